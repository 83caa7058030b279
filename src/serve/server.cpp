// The one file that includes Boost, so that its 40 seconds are paid once (decision 0019).
#include "serve/server.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>  // Boost 1.74's asio/awaitable.hpp lacks it
#ifdef RUSHLIGHT_WITH_TLS
#include <boost/asio/ssl.hpp>
#include <boost/beast/ssl.hpp>
#endif
#include <boost/asio.hpp>
#include <boost/beast.hpp>
#include <csignal>
#include <deque>
#include <thread>

#include "core/error.h"
#include "core/host/network.h"
#include "serve/live.h"
#include "serve/log.h"

namespace rushlight::serve {
namespace {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = net::ip::tcp;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kIdle = seconds(75), kHeader = seconds(10), kHandshake = seconds(10), kLinger = seconds(2);
constexpr auto kTick = milliseconds(250);  // between looks at whether the client is still there
constexpr size_t kRead = 64 << 10;         // of a body at once, at most
constexpr size_t kUnread = 4 << 20;        // of a stream that its client doesn't read
constexpr int kLost = 499;                 // the client went away, as nginx logs it

// For transfers of this size; slower clients are cut off.
Clock::duration patience(uint64_t bytes) { return seconds(20 + bytes / (64 << 10)); }

std::string decoded(std::string_view text) {
  auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  };
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape =
        text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0;
    out += escape ? static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2])) : text[i];
    if (escape) i += 2;
  }
  return out;
}

}  // namespace

struct Server::Shared {
  Shared(const Options& o, Counters& c) : options(o), counters(c), io(o.io_threads), work(2), acceptor(io) {}

  const Options& options;
  Counters& counters;
  net::io_context io;
  net::thread_pool work;
  tcp::acceptor acceptor;
  Callbacks callbacks;
  std::atomic<bool> draining{false};
#ifdef RUSHLIGHT_WITH_TLS
  std::optional<net::ssl::context> tls;
#endif

  void accept();
  void accepted(tcp::socket socket);
};

namespace {

using Shared = Server::Shared;

template <class Stream>
constexpr bool kTls = !std::is_same_v<Stream, beast::tcp_stream>;

template <class Stream>
class Connection final : public Line, public std::enable_shared_from_this<Connection<Stream>> {
 public:
  template <class... More>
  Connection(Shared& shared, tcp::socket socket, More&... more)
      : shared_(shared), stream_(std::move(socket), more...), watch_(stream_.get_executor()) {
    beast::error_code ignored;
    const auto peer = raw().socket().remote_endpoint(ignored);
    client_ = peer.address().to_string() + ":" + std::to_string(peer.port());
    raw().socket().set_option(tcp::no_delay(true), ignored);
    shared_.counters.connections.fetch_add(1, std::memory_order_relaxed);
    shared_.counters.connections_total.fetch_add(1, std::memory_order_relaxed);
  }
  ~Connection() override { shared_.counters.connections.fetch_sub(1, std::memory_order_relaxed); }

  void start() {
    net::dispatch(stream_.get_executor(), [self = this->shared_from_this()] {
      if constexpr (kTls<Stream>) {
        self->raw().expires_after(kHandshake);
        self->stream_.async_handshake(Stream::server, [self](beast::error_code e) {
          if (!e) self->wait();
        });
      } else {
        self->wait();
      }
    });
  }

  void run(std::function<void()> work) override { net::dispatch(stream_.get_executor(), std::move(work)); }

  void answer(Live& live, Reply reply) override {
    if (&live != live_.get() || live.finished()) return;
    live.status = reply.status, live.sent = reply.body.size();
    http::response<http::string_body> r = head_of<http::string_body>(live, reply);
    r.content_length(reply.body.size());
    if (!live.head_only) r.body() = std::move(reply.body);
    raw().expires_after(patience(live.sent));
    response_.emplace(std::move(r));
    auto written = [self = this->shared_from_this()](beast::error_code e, size_t) { self->written(e); };
    if (live.head_only) {
      serializer_.emplace(*response_);
      return http::async_write_header(stream_, *serializer_, std::move(written));
    }
    http::async_write(stream_, *response_, std::move(written));
  }

  void begin(Live& live, Reply head) override {
    if (&live != live_.get() || live.finished()) return;
    live.status = head.status, live.streams = true;
    live.chunked = live.chunked && !live.head_only;
    if (!live.chunked) live.keep_alive = false;
    http::response<http::string_body> r = head_of<http::string_body>(live, head);
    r.chunked(live.chunked);
    response_.emplace(std::move(r));
    serializer_.emplace(*response_);
    writing_ = true;
    raw().expires_after(patience(0));
    http::async_write_header(
        stream_, *serializer_,
        [self = this->shared_from_this()](beast::error_code e, size_t) { self->piece_written(e); });
  }
  void piece(Live& live, std::string text) override {
    if (&live != live_.get() || live.finished() || !live.streams || text.empty()) return;
    live.sent += text.size(), waiting_ += text.size();
    pieces_.push_back(std::move(text));
    if (waiting_ > kUnread) return lost(kLost);
    if (!writing_) write_piece();
  }
  void finish(Live& live) override {
    if (&live != live_.get() || live.finished() || !live.streams) return;
    ending_ = true;
    if (!writing_) write_piece();
  }

 private:
  beast::tcp_stream& raw() { return beast::get_lowest_layer(stream_); }

  // The first byte of a request may take its time, what follows may not.
  void wait() {
    if (buffer_.size()) return read_header();
    raw().expires_after(shared_.draining ? Clock::duration(seconds(1)) : Clock::duration(kIdle));
    stream_.async_read_some(buffer_.prepare(4096),
                            [self = this->shared_from_this()](beast::error_code e, size_t n) {
                              if (e) return self->close();
                              self->buffer_.commit(n);
                              self->read_header();
                            });
  }
  void read_header() {
    arrived_ = Clock::now();
    parser_.emplace();
    parser_->header_limit(static_cast<uint32_t>(shared_.options.max_header));
    parser_->body_limit(shared_.options.max_body);
    raw().expires_after(kHeader);
    http::async_read_header(
        stream_, buffer_, *parser_,
        [self = this->shared_from_this()](beast::error_code e, size_t) { self->header_read(e); });
  }
  void header_read(beast::error_code e) {
    if (e == http::error::end_of_stream || e == net::error::eof || e == net::error::connection_reset ||
        e == net::error::operation_aborted)
      return close();
    live_ = std::make_shared<Live>(shared_.options, shared_.counters, this->shared_from_this());
    live_->start(arrived_, shared_.options.deadline);
    take_request();
    if (e) return malformed(e);
    if (auto refused = shared_.callbacks.refuse(live_->request)) return refuse(std::move(*refused));
    const auto length = parser_->content_length();
    if (!live_->take_memory(length ? *length : parser_->chunked() ? shared_.options.max_body : 0))
      return refuse(error_reply(503, "the server's memory for requests is taken"));
    if (parser_->is_done()) return body_read({});
    if (beast::iequals(parser_->get()[http::field::expect], "100-continue")) {
      static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
      raw().expires_after(kHeader);
      return net::async_write(stream_, net::buffer(kContinue),
                              [self = this->shared_from_this()](beast::error_code e, size_t) {
                                if (e) return self->lost(kLost);
                                self->read_body();
                              });
    }
    read_body();
  }
  void read_body() {
    const auto length = parser_->content_length();
    raw().expires_after(patience(length ? *length : shared_.options.max_body));
    // A read takes what the buffer has room for, and costs more than copying it.
    buffer_.reserve(static_cast<size_t>(std::min<uint64_t>(length.value_or(kRead), kRead)));
    http::async_read(stream_, buffer_, *parser_,
                     [self = this->shared_from_this()](beast::error_code e, size_t) { self->body_read(e); });
  }
  void body_read(beast::error_code e) {
    if (e == http::error::partial_message || e == net::error::eof || e == net::error::connection_reset)
      return lost(kLost);
    if (e) return malformed(e);
    live_->request.body = std::move(parser_->get().body());
    live_->received = live_->request.body.size();
    shared_.counters.bytes_in.fetch_add(live_->received, std::memory_order_relaxed);
    raw().expires_never();
    if (buffer_.size() == 0) buffer_.shrink_to_fit();  // waiting connections hold little
    live_->whole = Clock::now();
    look_again();
    auto handle = [&shared = shared_, live = live_]() mutable {
      try {
        shared.callbacks.handle(live);
      } catch (const std::bad_alloc&) {
        live->reply(error_reply(503, "out of memory"));
      } catch (const std::exception& e) {
        live->reply(error_reply(500, e.what()));
      }
    };
    const size_t size = live_->received, text = live_->request.text_size().value_or(0);
    if (quick(text, size - text)) return handle();
    net::post(shared_.work, std::move(handle));
  }
  void take_request() {
    Request& r = live_->request;
    const auto& m = parser_->get();
    const std::string_view target(m.target().data(), m.target().size());
    r.method.assign(m.method_string().data(), m.method_string().size());
    r.path = decoded(target.substr(0, target.find('?')));
    if (const size_t at = target.find('?'); at != std::string_view::npos) r.query = target.substr(at + 1);
    for (const auto& field : m) {
      std::string name(field.name_string().data(), field.name_string().size());
      for (char& c : name)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
      r.headers.emplace_back(std::move(name), std::string(field.value().data(), field.value().size()));
    }
    r.client = client_;
    live_->head_only = m.method() == http::verb::head;
    live_->chunked = m.version() >= 11;
    live_->keep_alive = m.keep_alive();
  }
  // The rest of what is sent is not read, so that this is the connection's last request.
  void refuse(Reply reply) {
    live_->keep_alive = false;
    live_->reply(std::move(reply));
  }
  void malformed(beast::error_code e) {
    live_->route = "malformed";
    if (e == http::error::body_limit)
      return refuse(error_reply(413, str("a request has at most ", shared_.options.max_body, " bytes")));
    if (e == http::error::header_limit || e == http::error::buffer_overflow)
      return refuse(error_reply(431, str("headers have at most ", shared_.options.max_header, " bytes")));
    if (e == beast::error::timeout) return refuse(error_reply(408, "the request took too long to arrive"));
    refuse(error_reply(400, str("no request of HTTP: ", e.message())));
  }

  // Whether the client is still there, and the deadline. One timer goes on from request to request, since
  // setting it costs as much as a small request.
  void look_again() {
    if (std::exchange(watching_, true)) return;
    watch_.expires_after(kTick);
    watch_.async_wait([self = this->shared_from_this()](beast::error_code e) {
      self->watching_ = false;
      if (!e && self->live_ && self->live_->whole != Clock::time_point()) self->look();
    });
  }
  void look() {
    const std::shared_ptr<Live> live = live_;
    const auto now = Clock::now();
    // Who closes its half behind a request is still answered where that is quick.
    const bool fresh = now < live->whole + kTick;
    if (!fresh && host::peer_is_gone(static_cast<intptr_t>(raw().socket().native_handle())))
      return lost(kLost);
    if (!live->answered() && now > live->deadline()) {
      live->reply(error_reply(504, "the deadline passed"));
      live->expire();
    } else if (live->streams && now > live->deadline() + seconds(10)) {
      return lost(504);
    }
    look_again();
  }
  void lost(int status) {
    if (!live_) return close();
    live_->status = status;
    shared_.counters.lost.fetch_add(1, std::memory_order_relaxed);
    live_->lose();
    done();
    watch_.cancel();
    beast::error_code ignored;
    raw().socket().close(ignored);
  }

  template <class Body>
  http::response<Body> head_of(const Live& live, const Reply& reply) {
    http::response<Body> r{static_cast<http::status>(reply.status), live.chunked ? 11u : 10u};
    r.set(http::field::server, "rushlight");
    if (!reply.type.empty()) r.set(http::field::content_type, reply.type);
    for (const auto& [name, value] : reply.headers) r.set(name, value);
    r.keep_alive(live.keep_alive && !shared_.draining);
    return r;
  }
  void written(beast::error_code e) {
    if (!live_) return;
    if (e) return lost(kLost);
    const bool on = live_->keep_alive && !shared_.draining;
    const bool unread = !parser_->is_done();
    live_->complete();
    done();
    serializer_.reset(), response_.reset();
    if (on) return wait();
    if (unread) return linger();
    close();
  }
  void write_piece() {
    if (pieces_.empty() && !ending_) return;
    writing_ = true;
    raw().expires_after(patience(waiting_));
    auto written = [self = this->shared_from_this()](beast::error_code e, size_t) { self->piece_written(e); };
    if (pieces_.empty()) {
      last_ = true;
      if (!live_->chunked) return piece_written({});
      return net::async_write(stream_, http::make_chunk_last(), std::move(written));
    }
    piece_.clear();
    for (; !pieces_.empty(); pieces_.pop_front()) piece_ += pieces_.front();
    waiting_ = 0;
    if (!live_->chunked) return net::async_write(stream_, net::buffer(piece_), std::move(written));
    net::async_write(stream_, http::make_chunk(net::buffer(piece_)), std::move(written));
  }
  void piece_written(beast::error_code e) {
    writing_ = false;
    if (!live_) return;
    if (e) return lost(kLost);
    if (last_) {
      last_ = ending_ = false;
      return this->written({});
    }
    raw().expires_never();
    write_piece();
  }

  // The exchange is over, one way or the other.
  void done() {
    const std::shared_ptr<Live> live = std::move(live_);
    live_.reset();
    pieces_.clear();
    waiting_ = 0;
    const double took = std::chrono::duration<double>(Clock::now() - live->request.arrived).count();
    shared_.counters.answered(live->route, live->status, took);
    shared_.counters.bytes_out.fetch_add(live->sent, std::memory_order_relaxed);
    const LogChoice choice = shared_.options.log;
    if (choice == LogChoice::None || (choice == LogChoice::Errors && live->status < 400)) return;
    JsonObject line = log::line(live->status < 500 ? "info" : "error", "request");
    line.add("client", live->request.client)
        .add("method", live->request.method)
        .add("path", live->request.path);
    line.add("route", live->route).add("status", live->status);
    line.add("ms", static_cast<double>(static_cast<int64_t>(took * 1e6)) / 1e3);
    line.add("received", live->received).add("sent", live->sent);
    if (!live->model.empty()) line.add("model", live->model);
    if (const auto id = live->request.header("x-request-id"); !id.empty()) line.add("id", id.substr(0, 200));
    log::write(line);
  }

  // Lets the client read the answer before it learns that nobody reads what it still sends.
  void linger() {
    beast::error_code ignored;
    raw().socket().shutdown(tcp::socket::shutdown_send, ignored);
    raw().expires_after(kLinger);
    discard();
  }
  void discard() {
    raw().async_read_some(net::buffer(rubbish_),
                          [self = this->shared_from_this()](beast::error_code e, size_t) {
                            if (!e) return self->discard();
                            self->close();
                          });
  }
  void close() {
    watch_.cancel();  // it would keep the connection
    beast::error_code ignored;
    if constexpr (kTls<Stream>) {
      if (raw().socket().is_open() && !closing_) {
        closing_ = true;
        raw().expires_after(kLinger);
        return stream_.async_shutdown(
            [self = this->shared_from_this()](beast::error_code) { self->close(); });
      }
    }
    raw().socket().shutdown(tcp::socket::shutdown_both, ignored);
    raw().socket().close(ignored);
  }

  Shared& shared_;
  Stream stream_;
  net::steady_timer watch_;
  std::string client_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  std::optional<http::response<http::string_body>> response_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
  std::shared_ptr<Live> live_;
  Clock::time_point arrived_;
  std::deque<std::string> pieces_;
  std::string piece_;
  size_t waiting_ = 0;
  bool writing_ = false, ending_ = false, last_ = false, closing_ = false, watching_ = false;
  char rubbish_[1024];
};

}  // namespace

Reply error_reply(int status, std::string_view what) {
  Reply reply{status, JsonObject().add("error", what).done(), "application/json", {}};
  if (status == 503 || status == 429) reply.headers.emplace_back("Retry-After", "1");
  return reply;
}

// --- listening
// ------------------------------------------------------------------------------------------------

void Server::Shared::accept() {
  acceptor.async_accept(net::make_strand(io), [this](beast::error_code e, tcp::socket socket) {
    if (!acceptor.is_open()) return;
    if (e) {  // no file descriptors, most likely: those who wait are taken when some are free
      auto timer = std::make_shared<net::steady_timer>(io, milliseconds(100));
      return timer->async_wait([this, timer](beast::error_code) { accept(); });
    }
    accepted(std::move(socket));
    accept();
  });
}

void Server::Shared::accepted(tcp::socket socket) {
  if (counters.connections.load() >= static_cast<int64_t>(options.connections)) {
    counters.connections_refused.fetch_add(1, std::memory_order_relaxed);
    static constexpr std::string_view kFull =
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: "
        "0\r\n\r\n";
    beast::error_code ignored;
    socket.non_blocking(true, ignored);
#ifdef RUSHLIGHT_WITH_TLS
    if (!tls)
#endif
      socket.send(net::buffer(kFull), 0, ignored);
    return;
  }
#ifdef RUSHLIGHT_WITH_TLS
  using TlsStream = beast::ssl_stream<beast::tcp_stream>;
  if (tls) return std::make_shared<Connection<TlsStream>>(*this, std::move(socket), *tls)->start();
#endif
  std::make_shared<Connection<beast::tcp_stream>>(*this, std::move(socket))->start();
}

Server::Server(const Options& options, Counters& counters)
    : shared_(std::make_unique<Shared>(options, counters)) {
  if (!options.certificate.empty()) {
#ifdef RUSHLIGHT_WITH_TLS
    try {
      auto& tls = shared_->tls.emplace(net::ssl::context::tls_server);
      tls.set_options(net::ssl::context::default_workarounds | net::ssl::context::no_tlsv1 |
                      net::ssl::context::no_tlsv1_1 | net::ssl::context::no_compression);
      tls.use_certificate_chain_file(options.certificate);
      tls.use_private_key_file(options.private_key, net::ssl::context::pem);
    } catch (const std::exception& e) {
      RL_FAIL_AS(Value, "TLS with '", options.certificate, "' and '", options.private_key, "': ", e.what());
    }
#else
    RL_FAIL_AS(Value, "this server was built without OpenSSL: it has no TLS");
#endif
  }
  beast::error_code e;
  const auto address = net::ip::make_address(options.host, e);
  RL_CHECK_VALUE(!e, "--host needs an address such as 127.0.0.1, ::1 or 0.0.0.0, not '", options.host, "'");
  auto checked = [&] {
    RL_CHECK(!e, "cannot listen on ", options.host, " port ", options.port, ": ", e.message());
  };
  auto& acceptor = shared_->acceptor;
  acceptor.open(address.is_v6() ? tcp::v6() : tcp::v4(), e), checked();
  acceptor.set_option(net::socket_base::reuse_address(true), e), checked();
  acceptor.bind({address, options.port}, e), checked();
  acceptor.listen(net::socket_base::max_listen_connections, e), checked();
}

Server::~Server() = default;

uint16_t Server::port() const { return shared_->acceptor.local_endpoint().port(); }
void Server::post(std::function<void()> work) { net::post(shared_->work, std::move(work)); }

void Server::run(Callbacks callbacks, std::function<void()> ending) {
  Shared& s = *shared_;
  s.callbacks = std::move(callbacks);
  net::signal_set signals(s.io, SIGTERM, SIGINT);
  net::steady_timer timer(s.io);
  Clock::time_point asked;
  std::function<void()> wait_for_the_rest = [&] {
    const auto now = Clock::now();
    const bool idle = s.counters.in_flight.load() == 0 && now > asked + seconds(1);
    const auto limit =
        asked + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s.options.drain));
    if (idle || now > limit || s.counters.connections.load() == 0) return s.io.stop();
    timer.expires_after(milliseconds(20));
    timer.async_wait([&](beast::error_code) { wait_for_the_rest(); });
  };
  std::function<void()> listen_to_signals = [&] {
    signals.async_wait([&](beast::error_code e, int) {
      if (e) return;
      if (s.draining.exchange(true)) return s.io.stop();  // asked twice
      asked = Clock::now();
      beast::error_code ignored;
      s.acceptor.close(ignored);
      ending();
      listen_to_signals();
      wait_for_the_rest();
    });
  };
  listen_to_signals();
  s.accept();
  std::vector<std::thread> threads;
  for (int i = 1; i < s.options.io_threads; ++i) threads.emplace_back([&s] { s.io.run(); });
  s.io.run();
  for (std::thread& t : threads) t.join();
  s.work.stop();
  s.work.join();
}

}  // namespace rushlight::serve
