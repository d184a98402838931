internal import Codecs
internal import SandboxModel

/// The layers of a policy, selected from a library.
struct LayerSelection {
  private(set) var documents: [PolicyDocument]
  private(set) var layers: [CompiledPolicy.Layer] = []
  private(set) var patterns: [CommandLinePattern] = []
  private(set) var issues: [PolicyIssue]

  /// Selects the chain alone, optionally with one overlay.
  init(chainOf base: PolicyDocument, over: PolicyDocument? = nil, in library: PolicyLibrary) {
    let chain = Chain(of: base, in: library)
    documents = chain.documents
    issues = chain.issues
    appendLayers(chain.documents, as: .chain)
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
        issues.append(error)
      }
    }
    layers.append(CompiledPolicy.Layer(patterns: rules))
  }

  private mutating func append(_ document: PolicyDocument) {
    documents.append(document)
    let isFile = document.source.origin == .commandLine
    layers.append(CompiledPolicy.Layer(document, isFile ? .file : .overlay))
  }

  private mutating func appendLayers(_ chain: [PolicyDocument], as part: CompiledPolicy.Layer.Part)
  {
    layers += chain.map { CompiledPolicy.Layer($0, part) }
    for document in chain where !document.finalRules.isEmpty || !document.finalMarkers.isEmpty {
      layers.append(CompiledPolicy.Layer(document, .finally))
    }
  }

  /// Adds a policy given as a file, with those policies that it extends and that are not selected
  /// yet.
  private mutating func appendChain(of document: PolicyDocument, in library: PolicyLibrary) {
    let chain = Chain(of: document, in: library)
    issues += chain.issues
    let present = Set(documents.map(\.source.name))
    let new = chain.documents.filter { !present.contains($0.source.name) }
    documents += new
    appendLayers(new, as: .file)
  }

  /// Compiles the layers.
  ///
  /// - Returns: The policy, and the problems that prevent its use.
  func compile(
    name: String, title: String? = nil, layout: Layout?,
    osVersion: OSVersion?, allVersions: Bool = false
  ) -> (CompiledPolicy, [PolicyIssue]) {
    var parts = CompiledPolicy.Parts(
      name: name, title: title, layout: layout, osVersion: osVersion, layers: layers,
      tables: CompiledPolicy.Tables(documents))
    let issues = parts.assemble(allVersions: allVersions)
    return (CompiledPolicy(parts, digest: digest), issues)
  }

  /// A policy with the policies that it extends, in ascending order of precedence.
  private struct Chain {
    private let library: PolicyLibrary
    private(set) var documents: [PolicyDocument] = []
    private(set) var issues: [PolicyIssue] = []
    /// The policies from the first one to the current one.
    private var path: [String] = []
    private var done: Set<String> = []

    init(of document: PolicyDocument, in library: PolicyLibrary) {
      self.library = library
      visit(document)
    }

    private mutating func visit(_ document: PolicyDocument) {
      let name = document.name ?? document.source.name
      path.append(name)
      for reference in document.extends {
        if let start = path.firstIndex(of: reference.name) {
          refuseCycle(reference, path[start...])
        } else if done.contains(reference.name) {
          continue
        } else if let base = library.policy(reference.name) {
          checkLayout(of: base, against: document, reference)
          visit(base)
        } else {
          refuse(reference)
        }
      }
      path.removeLast()
      done.insert(name)
      documents.append(document)
    }

    private mutating func refuseCycle(
      _ reference: PolicyDocument.Reference, _ cycle: ArraySlice<String>
    ) {
      let chain = (cycle + [reference.name]).joined(separator: " extends ")
      issues.append(
        PolicyIssue(
          .extends, at: reference.location, "the policies extend each other: \(chain)",
          expected: "policies without a cycle"))
    }

    private mutating func refuse(_ reference: PolicyDocument.Reference) {
      let names = library.policyNames
      let guess = Resemblance.nearest(to: reference.name, among: names)
      issues.append(
        PolicyIssue(
          .extends, at: reference.location, "there is no policy '\(reference.name)'",
          expected: guess.map { "'\($0)'" } ?? "one of \(names.joined(separator: ", "))"))
    }

    private mutating func checkLayout(
      of base: PolicyDocument, against document: PolicyDocument,
      _ reference: PolicyDocument.Reference
    ) {
      guard let layout = document.layout, let other = base.layout, layout != other else { return }
      issues.append(
        PolicyIssue(
          .extends, at: reference.location,
          "the policy '\(reference.name)' is for the layout \(other.rawValue)",
          expected: "a policy for \(layout.rawValue), or for any layout"))
    }
  }
}

// MARK: - Digest

extension LayerSelection {
  /// The digest of all files and of the command-line patterns, in order. It is independent of
  /// comments, key order and quoting.
  private var digest: Digest {
    var bytes: [UInt8] = []
    for document in documents {
      Self.append("file", to: &bytes)
      Self.append(document.content, to: &bytes)
    }
    for text in patterns.flatMap(\.content) { Self.append(text, to: &bytes) }
    return Blake2b.hash(bytes)
  }

  private static func append(_ node: YAMLNode, to bytes: inout [UInt8]) {
    switch node.content {
    case .scalar(let scalar):
      append("scalar", to: &bytes)
      append(scalar.text, to: &bytes)
    case .sequence(let elements):
      append("list \(elements.count)", to: &bytes)
      for element in elements { append(element, to: &bytes) }
    case .mapping(let entries):
      append("mapping \(entries.count)", to: &bytes)
      let sorted = entries.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
      for entry in sorted {
        append(entry.name, to: &bytes)
        append(entry.value, to: &bytes)
      }
    }
  }

  private static func append(_ text: String, to bytes: inout [UInt8]) {
    bytes.append(contentsOf: "\(text.utf8.count):".utf8)
    bytes.append(contentsOf: text.utf8)
  }
}
