package import PolicyEngine
package import SystemIO

/// An expectation that does not hold.
package struct ScenarioFailure: Sendable, Hashable {
  /// The position of the expectation in the document.
  package let location: PolicyLocation
  /// The expected state.
  package let expected: String
  /// The state that was found.
  package let found: String
  /// The logical paths of the first entries concerned, at most `maximumPaths`.
  package let paths: [ByteString]
  /// The number of entries concerned.
  package let count: Int

  /// The maximum number of paths in a failure.
  package static let maximumPaths = 10

  /// Creates a failure that concerns the entries with these logical paths.
  package init(
    at location: PolicyLocation, expected: String, found: String, paths: [ByteString] = []
  ) {
    self.location = location
    self.expected = expected
    self.found = found
    self.paths = Array(paths.prefix(Self.maximumPaths))
    count = paths.count
  }

  /// The failure in one line without the position.
  package var summary: String {
    let names = paths.map { "'\($0)'" }.joined(separator: ", ")
    let more = count > paths.count ? " and \(count - paths.count) more" : ""
    return "expected \(expected); found \(found)" + (paths.isEmpty ? "" : ": \(names)\(more)")
  }
}

/// The result of a scenario at one version of the platform.
package struct ScenarioResult: Sendable, Hashable {
  /// The name of the scenario.
  package let scenario: String
  /// The position of the scenario.
  package let location: PolicyLocation
  /// The version of the platform, or `now`.
  package let version: String
  /// The outcome.
  package let outcome: Outcome
  /// The duration in seconds.
  package let seconds: Double

  /// Creates a result.
  package init(
    scenario: String, location: PolicyLocation, version: String, outcome: Outcome, seconds: Double
  ) {
    self.scenario = scenario
    self.location = location
    self.version = version
    self.outcome = outcome
    self.seconds = seconds
  }

  /// The outcome of a scenario at one version.
  package enum Outcome: Sendable, Hashable {
    /// All expectations hold.
    case passed
    /// Expectations do not hold, at least one.
    case failed([ScenarioFailure])
    /// The scenario was not run, for a reason.
    case skipped(String)
    /// A step could not be performed, or the scenario could not be started.
    case error(Problem)
  }

  /// The reason why a scenario could not be completed.
  package struct Problem: Sendable, Hashable {
    /// The position of the step, or of the scenario.
    package let location: PolicyLocation
    /// The message of the error.
    package let message: String
    /// The remedy, or nil for none.
    package let hint: String?
    /// The expectations that did not hold before the problem.
    package let failures: [ScenarioFailure]

    /// Creates a problem.
    package init(
      at location: PolicyLocation, _ message: String, hint: String? = nil,
      failures: [ScenarioFailure] = []
    ) {
      self.location = location
      self.message = message
      self.hint = hint
      self.failures = failures
    }
  }
}

extension ScenarioResult {
  /// The kinds of outcomes; the words are part of the JSON output.
  package enum Status: String, CaseIterable, Sendable, Hashable {
    case passed, failed, skipped, error
  }

  /// The kind of the outcome.
  package var status: Status {
    switch outcome {
    case .passed: .passed
    case .failed: .failed
    case .skipped: .skipped
    case .error: .error
    }
  }

  /// The expectations that do not hold.
  package var failures: [ScenarioFailure] {
    switch outcome {
    case .failed(let failures): failures
    case .error(let problem): problem.failures
    case .passed, .skipped: []
    }
  }
}

/// The results of all scenarios of a run.
package struct ScenarioReport: Sendable, Hashable {
  /// The results in the order of the files and of the versions.
  package let results: [ScenarioResult]
  /// The start of the run.
  package let started: Timestamp
  /// The duration of the run in seconds.
  package let seconds: Double

  /// Creates a report.
  package init(results: [ScenarioResult], started: Timestamp, seconds: Double) {
    self.results = results
    self.started = started
    self.seconds = seconds
  }

  /// Returns the number of results of a kind.
  package func count(_ status: ScenarioResult.Status) -> Int {
    results.count { $0.status == status }
  }

  /// Whether no result is a failure or an error.
  package var isSuccess: Bool { count(.failed) == 0 && count(.error) == 0 }
}
