import Testing

@testable import Lifecycle

/// How a scan is spread over threads: tests have small devices, which the usual share would leave to
/// one job, so that nothing would ever be put together from parts.
struct ScanVariant: Hashable, Sendable, CustomTestStringConvertible {
  let share: Int
  let workers: Int

  static let usual = ScanVariant(share: ScanOptions().share, workers: 1)
  static let all = [1, 7, usual.share].flatMap { share in
    [1, 2, 5].map { ScanVariant(share: share, workers: $0) }
  }

  /// The variant of the test that is running: always the same one, so that a failure repeats.
  static var ofThisTest: ScanVariant {
    let name = Test.current.map { "\($0.id)" } ?? ""
    let sum = name.utf8.reduce(UInt32(2_166_136_261)) { ($0 ^ UInt32($1)) &* 16_777_619 }
    return all[Int(sum) % all.count]
  }

  var testDescription: String { "share \(share), \(workers) workers" }

  /// Scan options with this share and as many workers.
  func applied(to options: ScanOptions) -> ScanOptions {
    var options = options
    (options.share, options.workers) = (share, workers)
    return options
  }
}
