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
  ///   because of these errors.
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

extension PolicyLint {
  /// Finds rules that no path can match: for containers that the layout lacks, or with a first
  /// component that does not occur there.
  struct UnmatchableRules {
    private let document: PolicyDocument
    private(set) var issues: [PolicyIssue] = []

    init(_ document: PolicyDocument) {
      self.document = document
      guard !document.layouts.isEmpty else { return }
      for rule in document.rules + document.finalRules { check(rule, isGeneral: true) }
      for rule in (document.apps + document.groups).flatMap(\.rules) {
        check(rule, isGeneral: false)
      }
      for quota in document.quotas { check(quota) }
    }

    private mutating func check(_ rule: Rule, isGeneral: Bool) {
      check(
        rule.pattern, in: rule.kinds, isGeneral: isGeneral, at: rule.patternLocation,
        what: "the rule"
      )
    }

    private mutating func check(_ quota: Quota) {
      check(quota.pattern, in: quota.kinds, isGeneral: true, at: quota.location, what: "the quota")
    }

    private mutating func check(
      _ pattern: Pattern, in kinds: Set<ContainerKind>, isGeneral: Bool,
      at location: PolicyLocation,
      what: String
    ) {
      let containers = document.layouts.flatMap { layout in
        layout.containerKinds.filter(kinds.contains).map { (layout, $0) }
      }
      guard !containers.isEmpty else {
        let own = document.layouts.flatMap(\.containerKinds).map(\.rawValue)
        let names = kinds.sorted().map(\.rawValue).joined(separator: ", ")
        issues.append(
          PolicyIssue(
            .unmatchable, at: location,
            "\(what) is for containers that the layout does not have: \(names)",
            expected: "'in' with one of \(own.joined(separator: ", "))"))
        return
      }
      guard isGeneral else { return }
      let shapes = containers.map { LayoutShape($0.0, $0.1) }
      guard !shapes.contains(where: { $0.canMatch(pattern) }) else { return }
      let names = shapes.flatMap(\.names).reduce(into: [String]()) { all, name in
        if !all.contains(name) { all.append(name) }
      }
      issues.append(
        PolicyIssue(
          .unmatchable, at: location,
          "'\(pattern.text)' cannot match: the layout does not have its first component",
          expected: "one of \(names.joined(separator: ", ")), or a pattern such as '*/**'"))
    }

    /// The names that a layout has at the top of its containers, to detect misspelled rules.
    private struct LayoutShape: Sendable {
      private let known: Pattern.Name?

      /// Creates the shape of a container kind; if none is known, every name is possible.
      init(_ layout: Layout, _ kind: ContainerKind) {
        let text: String? =
          switch (layout, kind) {
          case (.coreSimulator, .data), (.coreSimulator, .extension):
            "{Documents,Library,tmp,SystemData,StoreKit,CloudKit,GeoJSON,.*}"
          case (.coreSimulator, .bundle): "{*.app,iTunesMetadata.plist,BundleMetadata.plist,.*}"
          case (.flatpak, .data): "{data,config,cache,.*}"
          default: nil
          }
        known = text.flatMap { try? Pattern(parsing: $0) }?.components.first?.name
      }

      /// Whether a pattern can match in a container, judged by its first component.
      func canMatch(_ pattern: Pattern) -> Bool {
        guard let known, case .name(let first)? = pattern.components.first else { return true }
        return !first.commonNames(with: known).isEmpty
      }

      /// The possible names, for messages; empty if unknown.
      var names: [String] { known?.literals.map { String(decoding: $0, as: UTF8.self) } ?? [] }
    }
  }
}

extension PolicyLint {
  /// Finds rules without effect, because a later rule of the same list sets the same values for
  /// everything that they match. Every reported rule is without effect. Rules that several later
  /// rules override only jointly are not found, and only the first rules of lists with very many
  /// globs are checked.
  struct OverriddenRules {
    /// The maximum number of comparisons of a name with a glob for one list: a few seconds.
    private static let budget = 4_000_000

    private(set) var issues: [PolicyIssue] = []

    init(_ document: PolicyDocument) {
      for list in document.ruleLists where list.count > 1 { check(list) }
    }

    private mutating func check(_ list: [Rule]) {
      let operations = list.map {
        Operation(
          $0.settings, $0.platform, condition: Operation.Condition($0.conditions), classes: [:])
      }
      var trie = PatternTrie()
      for (index, rule) in list.enumerated() {
        trie.insert(rule.pattern, kind: .data, scope: .all, step: index, siblings: 0)
      }
      guard let root = trie.root(.data, .all) else { return }
      let limit = Self.budget / max(trie.globs.count, 1)
      for (index, rule) in list.prefix(limit).enumerated() {
        // A rule that matches everything this one matches also matches any single path of it.
        guard let path = rule.pattern.samples(depth: 1).first else { continue }
        let others = trie.steps(matching: path, from: [root]) { _ in 0 }
        let later = others.first { other in
          other > index && operations[other].sets(allOf: operations[index])
            && list[other].covers(rule)
        }
        if let later { add(rule, list[later]) }
      }
    }

    private mutating func add(_ rule: Rule, _ later: Rule) {
      issues.append(
        PolicyIssue(
          .overridden, at: rule.location,
          "the rule '\(rule.id)' has no effect: '\(later.id)' in line \(later.location.line) "
            + "always overrides it",
          expected: "the general rule before the specific one, or only one of them"))
    }
  }
}

extension Operation {
  /// Whether the operation sets every value that another one sets.
  fileprivate func sets(allOf other: Operation) -> Bool {
    keep.fields.isSuperset(of: other.keep.fields)
      && platform.fields.isSuperset(of: other.platform.fields)
  }
}

extension Rule {
  /// Whether the rule matches every entry that another rule matches.
  fileprivate func covers(_ other: Rule) -> Bool {
    kinds.isSuperset(of: other.kinds) && versions.covers(other.versions)
      && conditions.cover(other.conditions)
      && (conditions.siblings.isEmpty || pattern == other.pattern)
      && pattern.includes(other.pattern)
  }
}
