// From CUPTI's records to activities; where its headers are.
#include <gtest/gtest.h>

#if __has_include(<cupti_activity.h>)
#include "cuda/cupti_records.h"

namespace rushlight::cuda {
namespace {

template <class Record>
void add(CuptiRecords& records, const Record& r) {
  records.add(reinterpret_cast<const CUpti_Activity*>(&r));
}

TEST(CudaCupti, JoinsWorkWithItsCauses) {
  CuptiRecords records;
  records.begin(1000);
  CUpti_ActivityKernel10 kernel{};
  kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  kernel.name = "_Z3addPfS_", kernel.deviceId = 1, kernel.streamId = 7;
  kernel.start = 500, kernel.end = 600, kernel.correlationId = 42;
  add(records, kernel);
  CUpti_ActivityMemcpy6 copy{};
  copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY, copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  copy.bytes = 64, copy.start = 100, copy.end = 200, copy.correlationId = 41;
  add(records, copy);
  // The cause may be told later than the work.
  CUpti_ActivityExternalCorrelation cause{};
  cause.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, cause.correlationId = 42, cause.externalId = 99;
  add(records, cause);
  CUpti_ActivityAPI call{};
  call.kind = CUPTI_ACTIVITY_KIND_RUNTIME, call.correlationId = 42;
  add(records, call);

  const std::vector<DeviceActivity> all = records.finish();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "Memcpy HtoD");
  EXPECT_EQ(all[0].kind, DeviceActivity::Kind::Copy);
  EXPECT_EQ(all[0].bytes, 64);
  EXPECT_EQ(all[0].cause, 0u);
  EXPECT_EQ(all[0].start, 1100);
  EXPECT_EQ(all[1].name, "add(float*, float*)");
  EXPECT_EQ(all[1].device, 1);
  EXPECT_EQ(all[1].stream, 7u);
  EXPECT_EQ(all[1].end, 1600);
  EXPECT_EQ(all[1].cause, 99u);
  EXPECT_TRUE(records.finish().empty());
}

}  // namespace
}  // namespace rushlight::cuda
#endif
