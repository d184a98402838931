import Testing

@testable import DeviceScan

/// How a scan is divided among threads. The small devices of tests would be a single job with the
/// usual share, so that no results would be merged.
struct ScanVariant: Hashable, Sendable, CustomTestStringConvertible {
  let share: Int
  let workers: Int

  static let usual = ScanVariant(share: 2048, workers: 1)
  static let all = [1, 7, usual.share].flatMap { share in
    [1, 2, 5].map { ScanVariant(share: share, workers: $0) }
  }

  var testDescription: String { "share \(share), \(workers) workers" }

  /// Scan options with this share and number of workers.
  func applied(to options: ScanOptions) -> ScanOptions {
    var options = options
    (options.share, options.workers) = (share, workers)
    return options
  }
}

/// Runs each test with a share and a number of threads that depend on the test's name, so that a
/// failure can be repeated.
struct SpreadScans: SuiteTrait, TestTrait, TestScoping {
  let isRecursive = true

  @concurrent func provideScope(
    for test: Test, testCase: Test.Case?,
    performing body: @Sendable @concurrent () async throws -> Void
  ) async throws {
    let sum = "\(test.id)".utf8.reduce(UInt32(2_166_136_261)) { ($0 ^ UInt32($1)) &* 16_777_619 }
    let variant = ScanVariant.all[Int(sum) % ScanVariant.all.count]
    try await ScanOptions.$usualShare.withValue(variant.share) {
      try await ScanOptions.$usualWorkers.withValue(variant.workers) { try await body() }
    }
  }
}

extension Trait where Self == SpreadScans {
  /// Scans of the tests are divided among threads and jobs in one of several ways.
  static var spreadScans: Self { Self() }
}
