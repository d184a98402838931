// Determines the data class and the policy decision for every path in a sandbox.
//
// A policy is a YAML file of rules. Files are layered (`PolicyLibrary`), checked, and compiled
// once for a layout and an OS version (`CompiledPolicy`): the patterns become an automaton over
// path components. A walk carries a `Classifier.State` down the tree, so the cost of an entry is
// proportional to the length of its name. Each entry has two verdicts: what this program keeps,
// and what the platform itself does. `CompiledPolicy.explain` returns the rules and marks that led
// to them.
//
// The module is pure: it opens no files, reads no clock, and answers equal queries equally. It
// neither checks whether a path exists nor looks for marks itself; the caller provides the marks,
// the type, the size and the time. A classifier and its states belong to one thread.

public import SandboxModel

/// All available policy files: built-in, of the system, of the user, and from the command line.
public struct PolicyLibrary: Sendable {
  /// The files that could be read as policies, in the order of layers: by origin, then by file name
  /// for files of a directory.
  public let documents: [PolicyDocument]
  /// The mistakes that each file has individually.
  private let issues: [String: [PolicyIssue]]
  private let policies: [String: Int]

  /// Reads the files. Never fails: mistakes are reported by `lint`, and by `compile` for the files
  /// involved.
  ///
  /// - Parameter replacements: Files that replace the policies with the same names, with their
  ///   origin, to be checked instead of them.
  public init(_ sources: [PolicySource], replacements: [PolicySource] = []) {
    self.init(reading: Self.replace(sources, by: replacements))
  }

  private init(reading sources: [PolicySource]) {
    var documents: [PolicyDocument] = []
    var issues: [String: [PolicyIssue]] = [:]
    var policies: [String: Int] = [:]
    for source in Self.inOrder(sources) {
      let (document, found) = PolicyDocument.read(source)
      issues[source.name, default: []] += found
      guard let document else { continue }
      if let name = document.name {
        if let earlier = policies[name] {
          issues[source.name, default: []].append(
            PolicyIssue(
              .duplicate, at: document.location,
              "the policy '\(name)' is already in \(documents[earlier].source.name)",
              expected: "another name, or 'overlay' to change it"))
        } else {
          policies[name] = documents.count
        }
      }
      documents.append(document)
    }
    self.documents = documents
    self.issues = issues
    self.policies = policies
  }

  private static func replace(
    _ sources: [PolicySource], by replacements: [PolicySource]
  ) -> [PolicySource] {
    var sources = sources
    var names: [Int: String] = [:]
    if !replacements.isEmpty {
      for (index, source) in sources.enumerated() {
        names[index] = PolicyDocument.read(source).document?.name
      }
    }
    for replacement in replacements {
      let name = PolicyDocument.read(replacement).document?.name
      let number = name.flatMap { name in names.first { $0.value == name }?.key }
      if let number {
        sources[number] = PolicySource(
          name: replacement.name, bytes: replacement.bytes, origin: sources[number].origin)
      } else {
        sources.append(replacement)
      }
    }
    return sources
  }

  private static func inOrder(_ sources: [PolicySource]) -> [PolicySource] {
    PolicySource.Origin.allCases.flatMap { origin in
      let own = sources.filter { $0.origin == origin }
      guard origin == .system || origin == .user else { return own }
      return own.sorted { $0.fileName.utf8.lexicographicallyPrecedes($1.fileName.utf8) }
    }
  }

  /// The policy names, in the order of their files.
  public var policyNames: [String] { documents.compactMap(\.name) }

  /// Returns the policy with a name.
  public func policy(_ name: String) -> PolicyDocument? { policies[name].map { documents[$0] } }

  /// Returns the name of the default policy for a layout: the first policy with that layout.
  public func defaultPolicy(for layout: Layout) -> String? {
    documents.first { $0.layout == layout && $0.name != nil }?.name
  }

  /// Returns the mistakes that a file has individually.
  func ownIssues(_ document: PolicyDocument) -> [PolicyIssue] { issues[document.source.name] ?? [] }

  /// The mistakes in files that could not be read as policies.
  var unreadableIssues: [PolicyIssue] {
    let readable = Set(documents.map(\.source.name))
    return issues.filter { !readable.contains($0.key) }.flatMap(\.value)
  }
}

// MARK: - Checking and compiling

extension PolicyLibrary {
  /// Collects the layers of a policy and compiles them.
  ///
  /// - Throws: `PolicyError` with every mistake of the files involved if there is an error.
  ///   Built-in files are not linted.
  public func compile(_ request: PolicyRequest) throws(PolicyError) -> CompiledPolicy {
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
    let selected = Set(selection.documents.map(\.source.name))
    for document in documents where document.isOfUnknownPurpose {
      if !selected.contains(document.source.name) { issues += ownIssues(document) }
    }
    try Self.refuse(issues, action)
    for document in selection.documents where document.source.origin != .builtin {
      issues += PolicyLint(document, in: self).issues
    }
    try Self.refuse(issues, action)
    let (policy, found) = selection.compile(
      name: base.name ?? "", title: base.title, layout: layout,
      osVersion: request.osVersion)
    try Self.refuse(found, action)
    return policy
  }

  private func base(for request: PolicyRequest) throws(PolicyError) -> PolicyDocument {
    let name = request.policy ?? request.layout.flatMap { defaultPolicy(for: $0) }
    if let name, let document = policy(name) { return document }
    let location = PolicyLocation(file: PolicyLocation.commandLine, line: 1, column: 1)
    let problem =
      name.map { "there is no policy '\($0)'" }
      ?? "there is no policy for the layout \(request.layout?.rawValue ?? "requested")"
    let broken = unreadableIssues + documents.flatMap { ownIssues($0) }
    let issue = PolicyIssue(
      .extends, at: location, problem,
      expected: "one of \(policyNames.joined(separator: ", "))")
    throw PolicyError("choose a policy", [issue] + broken)
  }

  private static func refuse(_ issues: [PolicyIssue], _ action: String) throws(PolicyError) {
    guard issues.contains(where: { $0.severity == .error }) else { return }
    var seen: Set<PolicyIssue> = []
    throw PolicyError(
      action, issues.filter { seen.insert($0).inserted }.sorted { $0.location < $1.location })
  }

  /// Returns every mistake in the files with a source name, or in all files if it is nil.
  ///
  /// A policy is checked with the policies that it extends, an overlay on top of the default policy
  /// of each of its layouts. Files that cannot be read as policies are included.
  public func lint(_ sourceName: String? = nil) -> [PolicyIssue] {
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
  public func test(_ sourceName: String? = nil) -> (count: Int, failures: [PolicyIssue]) {
    let tested = documents.filter { sourceName == nil || $0.source.name == sourceName }
    let failures = tested.flatMap { lint($0.source.name) }.filter { $0.kind == .example }
    return (tested.reduce(0) { $0 + $1.examples.count }, failures)
  }
}

/// A request for a compiled policy.
public struct PolicyRequest: Sendable, Hashable {
  /// The policy's name, or nil for the layout's default policy.
  public var policy: String?
  /// The device's layout, or nil for the policy's own layout.
  public var layout: Layout?
  /// The device's OS version, or nil if it is unknown and the newest one is assumed.
  public var osVersion: OSVersion?
  /// The command-line patterns, in order.
  public var patterns: [CommandLinePattern]

  /// Creates a request.
  public init(
    policy: String? = nil, layout: Layout? = nil, osVersion: OSVersion? = nil,
    patterns: [CommandLinePattern] = []
  ) {
    self.policy = policy
    self.layout = layout
    self.osVersion = osVersion
    self.patterns = patterns
  }
}
