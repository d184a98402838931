import Foundation
import TestSupport
import Testing

@testable import DeviceScan

/// How a scan is divided among threads. With the usual share, the small devices of tests would be a
/// single job, so that no results would be merged.
struct ScanVariant: Hashable, Sendable, CustomTestStringConvertible {
  let share: Int
  let workers: Int

  static let usual = ScanVariant(share: 2048, workers: 1)
  /// A single thread, which makes no jobs, and several threads with shares of one entry, of a part
  /// of a directory, of a few directories, and of more than a container has.
  static let all =
    [usual]
    + [1, 7, 50, usual.share].flatMap { share in
      [2, 5].map { ScanVariant(share: share, workers: $0) }
    }

  var testDescription: String { "share \(share), \(workers) workers" }

  /// Scan options with this share and number of workers.
  func applied(to options: ScanOptions) -> ScanOptions {
    var options = options
    (options.share, options.workers) = (share, workers)
    return options
  }

  /// Runs operations whose scans have this share and number of workers.
  func run<Result>(_ body: () throws -> Result) rethrows -> Result {
    try ScanOptions.$usualShare.withValue(share) {
      try ScanOptions.$usualWorkers.withValue(workers, operation: body)
    }
  }
}

/// Runs each test with a share and a number of threads that depend on the test's name, so that a
/// failure can be reproduced; in complete runs they also depend on a seed, which is printed. With
/// `SANDBOXCTL_TEST_DIVISION=N` all tests have the N-th variant: `make test-divisions` runs them
/// with each.
struct SpreadScans: SuiteTrait, TestTrait, TestScoping {
  let isRecursive = true

  /// The variant of all tests, if there is only one.
  private static let chosen: ScanVariant? = {
    guard let text = ProcessInfo.processInfo.environment["SANDBOXCTL_TEST_DIVISION"] else {
      return nil
    }
    guard let number = Int(text), ScanVariant.all.indices.contains(number - 1) else {
      let count = ScanVariant.all.count
      fatalError("SANDBOXCTL_TEST_DIVISION=\(text): not a number from 1 to \(count)")
    }
    return ScanVariant.all[number - 1]
  }()

  private static let offset: UInt32 = {
    guard Sampling.isWhole else { return 0 }
    var random = Seeded.fresh("the division of scans among threads")
    return UInt32(truncatingIfNeeded: random.next())
  }()

  /// The variant of the test with an ID.
  private static func variant(of test: String) -> ScanVariant {
    let sum = test.utf8.reduce(UInt32(2_166_136_261)) { ($0 ^ UInt32($1)) &* 16_777_619 }
    return ScanVariant.all[Int(sum &+ offset) % ScanVariant.all.count]
  }

  @concurrent func provideScope(
    for test: Test, testCase: Test.Case?,
    performing body: @Sendable @concurrent () async throws -> Void
  ) async throws {
    let variant = Self.chosen ?? Self.variant(of: "\(test.id)")
    try await ScanOptions.$usualShare.withValue(variant.share) {
      try await ScanOptions.$usualWorkers.withValue(variant.workers) { try await body() }
    }
  }
}

extension Trait where Self == SpreadScans {
  /// Scans of the tests are divided among threads and jobs in one of several ways.
  static var spreadScans: Self { Self() }
}
