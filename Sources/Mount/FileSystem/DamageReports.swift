internal import ArchiveStore
internal import Synchronization

/// The problems that were found. Each is reported once.
final class DamageReports: Sendable {
  private let report: @Sendable (String) -> Void
  private let known = Mutex(Known())

  private struct Known {
    var texts: Set<String> = []
    var damage = 0
  }
  /// The maximum number of reports.
  private static let limit = 1000

  init(_ report: @escaping @Sendable (String) -> Void) { self.report = report }

  /// The number of reports of damage.
  var count: Int { known.withLock { $0.damage } }

  /// Reports text that was not reported before.
  ///
  /// - Parameter isDamage: whether data in the repository is damaged, or merely unreachable.
  func add(_ text: String, isDamage: Bool = true) {
    let number = known.withLock { known -> Int? in
      guard known.texts.count <= Self.limit, known.texts.insert(text).inserted else { return nil }
      if isDamage { known.damage += 1 }
      return known.texts.count
    }
    guard let number else { return }
    report(number > Self.limit ? "further problems are not reported" : text)
  }
}
