internal import SandboxModel

/// Finds the mistakes of a file in combination with the files that it extends or overlays.
struct PolicyLint {
  private let document: PolicyDocument
  private let library: PolicyLibrary
  private let runsExamples: Bool
  private var found: Set<PolicyIssue> = []

  /// Checks a file.
  ///
  /// - Parameter runsExamples: Whether to run its examples. In a file with errors they would fail
  ///   because of those.
  init(_ document: PolicyDocument, in library: PolicyLibrary, runsExamples: Bool = true) {
    self.document = document
    self.library = library
    self.runsExamples = runsExamples
    for issue in UnmatchableRules(document).issues { found.insert(issue) }
    for issue in OverriddenRules(document).issues { found.insert(issue) }
    for selection in contexts { check(selection) }
  }

  /// The mistakes, ordered by position.
  var issues: [PolicyIssue] { found.sorted { $0.location < $1.location } }

  /// The layers in which the file is checked: the policy's chain; for an overlay, the default
  /// policy of each of its layouts with the overlay alone on top.
  private var contexts: [(LayerSelection, Layout?)] {
    guard case .overlay = document.role else {
      return [(LayerSelection(chainOf: document, in: library), document.layout)]
    }
    return Layout.allCases.compactMap { layout in
      guard document.isOverlay(for: layout),
        let base = library.defaultPolicy(for: layout).flatMap(library.policy)
      else { return nil }
      return (LayerSelection(chainOf: base, over: document, in: library), layout)
    }
  }

  private mutating func check(_ context: (selection: LayerSelection, layout: Layout?)) {
    let selection = context.selection
    found.formUnion(selection.issues)
    guard selection.issues.isEmpty else { return }
    let (policy, issues) = CompiledPolicy.compile(
      selection, name: document.name ?? "", layout: context.layout, osVersion: nil,
      allVersions: true)
    found.formUnion(issues)
    found.formUnion(LossCheck(document, policy).issues)
    guard runsExamples else { return }
    var examples = ExampleRun(document, selection, layout: context.layout, all: policy)
    examples.run()
    found.formUnion(examples.issues)
  }
}

extension PolicyLibrary {
  /// Returns every mistake in the files with a source name, or in all files if it is nil.
  ///
  /// A policy is checked with the policies that it extends, an overlay on top of the default policy
  /// of each of its layouts. Files that cannot be read as policies are included.
  package func lint(_ sourceName: String? = nil) -> [PolicyIssue] {
    var issues: [PolicyIssue] = []
    for issue in unreadableIssues where sourceName == nil || issue.location.file == sourceName {
      issues.append(issue)
    }
    for document in documents where sourceName == nil || document.source.name == sourceName {
      let own = ownIssues(document)
      issues += own
      let isSound = !own.contains { $0.severity == .error }
      issues += PolicyLint(document, in: self, runsExamples: isSound).issues
    }
    var seen: Set<PolicyIssue> = []
    return issues.filter { seen.insert($0).inserted }.sorted { $0.location < $1.location }
  }

  /// Runs the examples of the files with a source name, or of all files if it is nil.
  ///
  /// - Returns: The number of examples, and an issue for each failure.
  package func test(_ sourceName: String? = nil) -> (count: Int, failures: [PolicyIssue]) {
    let tested = documents.filter { sourceName == nil || $0.source.name == sourceName }
    let failures = tested.flatMap { lint($0.source.name) }.filter { $0.kind == .example }
    return (tested.reduce(0) { $0 + $1.examples.count }, failures)
  }
}
