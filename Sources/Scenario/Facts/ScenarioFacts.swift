package import PolicyEngine
package import SystemIO

/// The entries of a device at one time, with the facts about them.
package protocol ScenarioFacts {
  /// Returns the entries of all containers, without the containers' roots, each once.
  func entries() throws -> [ScenarioEntry]
  /// Returns the hash of an entry's bytes: of a file's content or a link's target; nil for other
  /// entries.
  func digest(of entry: ScenarioEntry) throws -> [UInt8]?
}

/// An entry of a device.
package struct ScenarioEntry: Sendable, Hashable {
  /// The logical path.
  package let path: ByteString
  /// The kind.
  package let kind: Kind
  /// The hash of a file's content or of a link's target, or nil if it is not known or there is
  /// none.
  package let digest: [UInt8]?
  /// The verdicts of the policy at the version of the platform.
  package let verdicts: Verdicts
  /// The extended attributes of the entry itself that exclude it from backups, without `user.`.
  package let marks: [ByteString]

  /// The kind of an entry.
  package enum Kind: String, CaseIterable, Sendable, Hashable {
    case file, directory, link, special
  }

  /// Creates an entry.
  package init(
    path: ByteString, kind: Kind, digest: [UInt8]? = nil, verdicts: Verdicts,
    marks: [ByteString] = []
  ) {
    self.path = path
    self.kind = kind
    self.digest = digest
    self.verdicts = verdicts
    self.marks = marks
  }
}

/// The facts of a past state, to which `same-bytes`, `survived` and `vanished` refer.
package struct ScenarioMoment: ScenarioFacts, Sendable, Hashable {
  /// The name of the state before the first step.
  package static let beginning = "beginning"

  private let recorded: [ScenarioEntry]

  /// Creates a moment from the entries of a state, with the digests of those for which
  /// `ScenarioDocument.needsDigest` is true.
  package init(_ entries: [ScenarioEntry]) { recorded = entries }

  package func entries() -> [ScenarioEntry] { recorded }

  package func digest(of entry: ScenarioEntry) -> [UInt8]? { entry.digest }
}

extension ScenarioDocument {
  /// All expectations of the steps, in order.
  package var expectations: [ScenarioExpectation] {
    steps.flatMap { step -> [ScenarioExpectation] in
      if case .expect(let expectations) = step.action { expectations } else { [] }
    }
  }

  /// The moments to which expectations refer; a run has to record only these.
  package var momentNames: Set<String> {
    Set(expectations.flatMap { $0.assertions.compactMap(\.assertion.moment) })
  }

  /// Whether an expectation compares the bytes of the entry with this logical path, so that moments
  /// have to record its digest.
  package func needsDigest(_ path: ByteString) -> Bool {
    expectations.contains { expectation in
      expectation.comparesBytes && expectation.matches(path)
    }
  }
}

extension ScenarioExpectation {
  /// Whether the expectation concerns a logical path.
  package func matches(_ path: ByteString) -> Bool {
    let names = path.components
    return patterns.contains { $0.matches(names) } && !exceptions.contains { $0.matches(names) }
  }

  fileprivate var comparesBytes: Bool {
    assertions.contains { located in
      if case .sameBytes = located.assertion { true } else { false }
    }
  }
}

extension ScenarioExpectation.Assertion {
  /// The moment with which the current state is compared, or nil for none.
  var moment: String? {
    switch self {
    case .sameBytes(let moment), .survived(let moment), .vanished(let moment): moment
    case .exists, .absent, .dataClass, .verdict, .mark: nil
    }
  }
}

extension Pattern {
  /// Whether the pattern matches a path, given by its components.
  fileprivate func matches(_ names: [ByteString]) -> Bool {
    var progress = start
    for name in names {
      progress = name.withSpan { advance(progress, by: $0) }
      if progress.isHopeless { return false }
    }
    return isMatch(progress)
  }
}
