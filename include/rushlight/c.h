/* The C interface: tensors by handle, operators by name. For other languages, and for extensions that shall
 * outlive C++ interfaces. Functions give 0 on success; else rl_last_error() says what went wrong, on the same
 * thread. */
#ifndef RUSHLIGHT_C_H
#define RUSHLIGHT_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Functions are added to a version, never changed; what is incompatible raises it. */
#define RL_C_VERSION 1
int rl_c_version(void);

/* As in rl_tensor_dtype; the numbers stay. */
enum rl_dtype {
  RL_BOOL = 0,
  RL_UINT8 = 1,
  RL_INT8 = 2,
  RL_INT16 = 3,
  RL_INT32 = 4,
  RL_INT64 = 5,
  RL_UINT16 = 6,
  RL_UINT32 = 7,
  RL_UINT64 = 8,
  RL_FLOAT16 = 9,
  RL_BFLOAT16 = 10,
  RL_FLOAT32 = 11,
  RL_FLOAT64 = 12,
  RL_COMPLEX64 = 13,
  RL_COMPLEX128 = 14
};

enum rl_error {
  RL_OK = 0,
  RL_ERROR_RUNTIME = 1,
  RL_ERROR_VALUE = 2,
  RL_ERROR_TYPE = 3,
  RL_ERROR_INDEX = 4,
  RL_ERROR_NOT_IMPLEMENTED = 5,
  RL_ERROR_OUT_OF_MEMORY = 6,
  RL_ERROR_OTHER = 7
};

typedef struct rl_tensor_s* rl_tensor;

const char* rl_last_error(void);

/* Every tensor that a function gives is the caller's, to be released once. Releasing NULL does nothing. */
void rl_tensor_release(rl_tensor tensor);
int rl_tensor_retain(rl_tensor tensor, rl_tensor* copy);
int rl_tensor_empty(const int64_t* sizes, size_t dim, int dtype, rl_tensor* result);
/* On the caller's memory, which must live until `release` is called with `context`. */
int rl_tensor_from_memory(void* data, const int64_t* sizes, const int64_t* strides, size_t dim, int dtype,
                          void (*release)(void* context), void* context, rl_tensor* result);
int rl_tensor_dim(rl_tensor tensor, size_t* dim);
int rl_tensor_sizes(rl_tensor tensor, const int64_t** sizes);
int rl_tensor_strides(rl_tensor tensor, const int64_t** strides);
int rl_tensor_numel(rl_tensor tensor, int64_t* numel);
int rl_tensor_dtype(rl_tensor tensor, int* dtype);
int rl_tensor_data(rl_tensor tensor, void** data);
int rl_tensor_item(rl_tensor tensor, double* value);

/* Gradients. rl_tensor_grad gives NULL where there is none. */
int rl_tensor_set_requires_grad(rl_tensor tensor, int on);
int rl_tensor_backward(rl_tensor tensor);
int rl_tensor_grad(rl_tensor tensor, rl_tensor* grad);
int rl_set_grad_enabled(int on);

/* One argument or result of an operator. */
enum rl_kind {
  RL_NONE = 0,
  RL_TENSOR = 1,
  RL_TENSORS = 2,
  RL_BOOLEAN = 3,
  RL_INT = 4,
  RL_FLOAT = 5,
  RL_INTS = 6,
  RL_FLOATS = 7,
  RL_STRING = 8,
  RL_DTYPE = 9
};
typedef struct rl_value {
  int kind;
  size_t length; /* of lists and strings */
  union {
    rl_tensor tensor;
    const rl_tensor* tensors;
    int boolean;
    int64_t integer;
    double number;
    const int64_t* ints;
    const double* floats;
    const char* string;
    int dtype;
  } as;
} rl_value;

/* Calls "add.Tensor", "linalg::inv" or, without an overload's name, the first overload that takes the
 * arguments. Arguments stand in the order of the schema; trailing ones may be left out where they have
 * defaults. `result_count` goes in as the room in `results` and comes out as their number. Tensors among the
 * results are the caller's; of a list of tensors, each becomes a result. */
int rl_call(const char* name, const rl_value* arguments, size_t argument_count, rl_value* results,
            size_t* result_count);
/* The schema of an operator, or NULL. The text lives as long as the process. */
const char* rl_schema(const char* name);

int rl_manual_seed(uint64_t seed);
/* A file of torch.save that holds a tensor; and safetensors by the file's name is read with names through
 * rl_load_named. */
int rl_save(rl_tensor tensor, const char* filename);
int rl_load(const char* filename, rl_tensor* result);
int rl_load_named(const char* filename, const char* name, rl_tensor* result);

/* Models in one file, as rushlight.export.save writes them. Threads may share a model. */
typedef struct rl_model_s* rl_model;
typedef struct rl_model_tensor {
  const char* name; /* lives as long as the model, like all below */
  const char* type; /* "float32[N, 3, 224, 224]", for messages */
  int dtype;
  int has_sizes; /* else any shape will do, or the shape is not known */
  size_t dim;
  const int64_t* sizes; /* -1 where the caller chooses */
} rl_model_tensor;
int rl_model_load(const char* filename, rl_model* model);
void rl_model_release(rl_model model);
int rl_model_input_count(rl_model model, size_t* count);
int rl_model_output_count(rl_model model, size_t* count);
int rl_model_input(rl_model model, size_t i, rl_model_tensor* result);
int rl_model_output(rl_model model, size_t i, rl_model_tensor* result);
/* `outputs` has room for as many tensors as the model has outputs; they are the caller's. */
int rl_model_run(rl_model model, const rl_tensor* inputs, size_t input_count, rl_tensor* outputs,
                 size_t output_count);

/* Methods of a model, and the state that they write to. Above, a model's first method is meant; below, NULL
 * stands for it. */
int rl_model_method_count(rl_model model, size_t* count);
int rl_model_method(rl_model model, size_t i, const char** name);
int rl_model_method_sizes(rl_model model, const char* method, size_t* input_count, size_t* output_count);
int rl_model_method_input(rl_model model, const char* method, size_t i, rl_model_tensor* result);
int rl_model_method_output(rl_model model, const char* method, size_t i, rl_model_tensor* result);
int rl_model_state_count(rl_model model, size_t* count);
int rl_model_state(rl_model model, size_t i, rl_model_tensor* result);

/* A session has a state of its own, which methods write to in place. It keeps its model. Threads that share
 * one wait for each other. After a run that failed, reset it. */
typedef struct rl_session_s* rl_session;
int rl_session_create(rl_model model, rl_session* session);
int rl_session_clone(rl_session session, rl_session* copy);
void rl_session_release(rl_session session);
int rl_session_reset(rl_session session);
int rl_session_nbytes(rl_session session, size_t* nbytes);
/* The session's own memory; the handle is the caller's. */
int rl_session_state(rl_session session, const char* name, rl_tensor* tensor);
int rl_session_run(rl_session session, const char* method, const rl_tensor* inputs, size_t input_count,
                   rl_tensor* outputs, size_t output_count);

/* The same of a file that is in memory, at a multiple of 64. The memory must stay as it is until `release` is
 * called with `context`, which is when nothing needs the model any more; if this fails, that is at once. */
int rl_model_load_memory(const void* bytes, size_t size, void (*release)(void* context), void* context,
                         rl_model* model);

/* Text from language models of one file, as rushlight.export.save_language_model writes them; not in the
 * small runtime. Threads may share a model. */
typedef struct rl_text_model_s* rl_text_model;
enum rl_finish { RL_FINISH_LENGTH = 0, RL_FINISH_END = 1, RL_FINISH_STOP = 2, RL_FINISH_CANCELLED = 3 };
typedef struct rl_text_settings {
  size_t struct_size; /* rl_text_settings_init() sets all fields to what is usual */
  int64_t max_tokens;
  double temperature; /* 0: always the most likely token */
  int64_t top_k;
  double top_p;
  double repetition_penalty;
  uint64_t seed;
  const char* const* stop; /* texts that end it */
  size_t stop_count;
  int ignore_end; /* go on behind tokens that end a text */
} rl_text_settings;
/* What gives 0 cancels. Pieces are UTF-8 and end with a zero too; together they are the text. */
typedef int (*rl_on_text)(void* context, const char* piece, size_t length);
typedef int (*rl_on_token)(void* context, int64_t token);

void rl_text_settings_init(rl_text_settings* settings);
int rl_text_model_load(const char* filename, rl_text_model* model);
void rl_text_model_release(rl_text_model model);
/* How a prompt goes on. `settings` may be NULL, and so may be the functions and `finish`, an rl_finish. */
int rl_text_generate(rl_text_model model, const char* prompt, const rl_text_settings* settings,
                     rl_on_text on_text, void* context, int* finish);
/* The same for numbers of tokens. */
int rl_text_generate_tokens(rl_text_model model, const int64_t* prompt, size_t count,
                            const rl_text_settings* settings, rl_on_token on_token, void* context,
                            int* finish);

#ifdef __cplusplus
}
#endif
#endif
