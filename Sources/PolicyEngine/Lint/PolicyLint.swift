internal import SandboxModel

/// Looks for the mistakes that a file makes together with those that it builds upon or lies over.
struct PolicyLint {
  private let document: PolicyDocument
  private let library: PolicyLibrary
  private var found: Set<PolicyIssue> = []

  init(_ document: PolicyDocument, in library: PolicyLibrary) {
    self.document = document
    self.library = library
    for issue in UnmatchableRules(document).issues { found.insert(issue) }
    for issue in OverriddenRules(document).issues { found.insert(issue) }
    for selection in contexts { check(selection) }
  }

  /// The mistakes, in the order of their places.
  var issues: [PolicyIssue] { found.sorted { $0.location < $1.location } }

  /// The layers in which the file is checked: a policy's chain; for an overlay, the policy of each
  /// layout that it lies over, with the overlay alone behind it.
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
      name: document.name ?? "", title: nil, layout: context.layout, osVersion: nil,
      documents: selection.documents, layers: selection.layers, allVersions: true)
    found.formUnion(issues)
    found.formUnion(LossCheck(document, policy).issues)
    var examples = ExampleRun(document, selection, layout: context.layout, all: policy)
    examples.run()
    found.formUnion(examples.issues)
  }
}

extension PolicyLibrary {
  /// Every mistake of the files of a name, or of all files when there is none.
  ///
  /// A policy is checked with what it extends; an overlay behind the policy of each layout that it
  /// lies over. Files that cannot be read as policies at all are among them.
  public func lint(_ sourceName: String? = nil) -> [PolicyIssue] {
    var issues: [PolicyIssue] = []
    for issue in unreadableIssues where sourceName == nil || issue.location.file == sourceName {
      issues.append(issue)
    }
    for document in documents where sourceName == nil || document.source.name == sourceName {
      let own = ownIssues(document)
      issues += own
      if !own.contains(where: { $0.severity == .error }) {
        issues += PolicyLint(document, in: self).issues
      } else {
        issues += UnmatchableRules(document).issues + OverriddenRules(document).issues
        if document.name != nil { issues += PolicyChain(of: document, in: self).issues }
      }
    }
    var seen: Set<PolicyIssue> = []
    return issues.filter { seen.insert($0).inserted }.sorted { $0.location < $1.location }
  }

  /// Runs the examples of the files of a name, or of all files.
  ///
  /// - Returns: How many there are, and what those say that come out otherwise.
  public func test(_ sourceName: String? = nil) -> (count: Int, failures: [PolicyIssue]) {
    let tested = documents.filter { sourceName == nil || $0.source.name == sourceName }
    let failures = tested.flatMap { lint($0.source.name) }.filter { $0.kind == .example }
    return (tested.reduce(0) { $0 + $1.examples.count }, failures)
  }
}
