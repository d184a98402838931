internal import SandboxModel

extension PolicyLibrary {
  /// Collects the layers of a policy and compiles them.
  ///
  /// - Throws: `PolicyError` with every mistake of the files involved if there is an error.
  ///   Built-in files are not linted.
  package func compile(_ request: PolicyRequest) throws(PolicyError) -> CompiledPolicy {
    let base = try base(for: request)
    let action = "use the policy '\(base.name ?? "")'"
    let layout = request.layout ?? base.layout
    var selection = LayerSelection(base: base, layout: layout, in: self)
    selection.add(request.patterns)
    var issues = selection.issues + unreadableIssues
    let names = Set(selection.documents.compactMap(\.name))
    for document in documents where document.name.map(names.contains) ?? false {
      issues += ownIssues(document)
    }
    for document in selection.documents where document.name == nil {
      issues += ownIssues(document)
    }
    try Self.refuse(issues, action)
    for document in selection.documents where document.source.origin != .builtin {
      issues += PolicyLint(document, in: self).issues
    }
    try Self.refuse(issues, action)
    let (policy, found) = CompiledPolicy.compile(
      selection, name: base.name ?? "", title: base.title, layout: layout,
      osVersion: request.osVersion)
    try Self.refuse(found, action)
    return policy
  }

  private func base(for request: PolicyRequest) throws(PolicyError) -> PolicyDocument {
    let name = request.policy ?? request.layout.flatMap { defaultPolicy(for: $0) }
    if let name, let document = policy(name) { return document }
    let place = PolicyLocation(file: PolicyLocation.commandLine, line: 1, column: 1)
    let problem =
      name.map { "there is no policy '\($0)'" }
      ?? "there is no policy for the layout \(request.layout?.rawValue ?? "requested")"
    let broken = unreadableIssues + documents.flatMap { ownIssues($0) }
    let issue = PolicyIssue(
      .extends, at: place, problem,
      expected: "one of \(policyNames.joined(separator: ", "))")
    throw PolicyError("choose a policy", [issue] + broken)
  }

  private static func refuse(_ issues: [PolicyIssue], _ action: String) throws(PolicyError) {
    guard issues.contains(where: { $0.severity == .error }) else { return }
    var seen: Set<PolicyIssue> = []
    throw PolicyError(
      action, issues.filter { seen.insert($0).inserted }.sorted { $0.location < $1.location })
  }
}

/// The layers of a policy, selected from a library.
struct LayerSelection {
  private(set) var documents: [PolicyDocument]
  private(set) var layers: [PolicyLayer] = []
  private(set) var patterns: [CommandLinePattern] = []
  private(set) var issues: [PolicyIssue]

  /// Selects the chain alone, optionally with one overlay.
  init(chainOf base: PolicyDocument, over: PolicyDocument? = nil, in library: PolicyLibrary) {
    let chain = PolicyChain(of: base, in: library)
    documents = chain.documents
    issues = chain.issues
    appendLayers(chain.documents)
    if let over { append(over) }
  }

  /// Selects the chain, the overlays for the layout, and the files from the command line.
  init(base: PolicyDocument, layout: Layout?, in library: PolicyLibrary) {
    self.init(chainOf: base, in: library)
    for document in library.documents {
      if document.isOverlay(for: layout) {
        append(document)
      } else if document.source.origin == .commandLine, document.name != nil,
        document.layout == nil || document.layout == layout,
        !documents.contains(where: { $0.source.name == document.source.name })
      {
        appendChain(of: document, in: library)
      }
    }
  }

  mutating func add(_ patterns: [CommandLinePattern]) {
    guard !patterns.isEmpty else { return }
    self.patterns = patterns
    var rules: [Rule] = []
    for (index, pattern) in patterns.enumerated() {
      do {
        rules.append(try pattern.rule(number: index + 1))
      } catch {
        issues.append(error.issue)
      }
    }
    layers.append(PolicyLayer(patterns: rules))
  }

  private mutating func append(_ document: PolicyDocument) {
    documents.append(document)
    let isFile = document.source.origin == .commandLine
    layers.append(PolicyLayer(document, isFile ? .file : .overlay))
  }

  private mutating func appendLayers(_ chain: [PolicyDocument]) {
    layers += chain.map { PolicyLayer($0, .chain) }
    for document in chain where !document.finalRules.isEmpty || !document.finalMarkers.isEmpty {
      layers.append(PolicyLayer(document, .finally))
    }
  }

  /// Adds a policy given as a file, with those policies that it extends and that are not selected
  /// yet.
  private mutating func appendChain(of document: PolicyDocument, in library: PolicyLibrary) {
    let chain = PolicyChain(of: document, in: library)
    issues += chain.issues
    let present = Set(documents.map(\.source.name))
    let new = chain.documents.filter { !present.contains($0.source.name) }
    documents += new
    layers += new.map { PolicyLayer($0, .file) }
    for document in new where !document.finalRules.isEmpty || !document.finalMarkers.isEmpty {
      layers.append(PolicyLayer(document, .finally))
    }
  }
}
