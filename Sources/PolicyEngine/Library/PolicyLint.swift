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
    let (policy, issues) = selection.compile(
      name: document.name ?? "", layout: context.layout, osVersion: nil,
      allVersions: true)
    found.formUnion(issues)
    found.formUnion(LossCheck(document, policy).issues)
    guard runsExamples else { return }
    var examples = ExampleRun(document, selection, layout: context.layout, all: policy)
    examples.run()
    found.formUnion(examples.issues)
  }
}
