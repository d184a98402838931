internal import Scenario
internal import Synchronization

/// The results of cases that end on several threads, in the order of the cases.
final class ResultList: Sendable {
  private let results: Mutex<[ScenarioResult?]>

  init(count: Int) { results = Mutex(Array(repeating: nil, count: count)) }

  /// Sets the result of a case.
  func set(_ result: ScenarioResult, at number: Int) { results.withLock { $0[number] = result } }

  /// The results that are known.
  var all: [ScenarioResult] { results.withLock { $0.compactMap(\.self) } }
}
