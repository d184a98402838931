internal import Codecs
internal import SandboxModel

extension CompiledPolicy.Parts {
  /// Collects the rules and markers of all layers in order and adds their patterns to the
  /// automaton.
  ///
  /// - Parameter allVersions: Whether to include rules and markers for other OS versions, to check
  ///   them.
  mutating func assemble(allVersions: Bool) -> [PolicyIssue] {
    var issues: [PolicyIssue] = []
    var siblings: [[UInt8]: Int] = [:]
    let classes = tables.classVerdicts
    for (index, layer) in layers.enumerated() {
      for (scope, rules) in layer.rules {
        for rule in rules where allVersions || rule.versions.contains(osVersion) {
          let operation = Operation(
            rule.settings, rule.platform, condition: Operation.Condition(rule.conditions),
            classes: classes)
          let mask = number(siblingsOf: rule, known: &siblings, issues: &issues)
          insert(rule, scope, siblings: mask)
          steps.append(
            CompiledPolicy.Step(
              origin: .rule(rule), layer: index, scope: scope, operation: operation))
        }
      }
      for marker in layer.markers where allVersions || marker.versions.contains(osVersion) {
        append(marker, layer: index, classes: classes, issues: &issues)
      }
    }
    trie.finish(steps.map(\.operation))
    return issues
  }

  private mutating func insert(
    _ rule: Rule, _ scope: CompiledPolicy.Scope, siblings: UInt64
  ) {
    let kinds = layout.map { Set($0.containerKinds) } ?? Set(ContainerKind.allCases)
    for kind in ContainerKind.allCases where rule.kinds.contains(kind) && kinds.contains(kind) {
      trie.insert(rule.pattern, kind: kind, scope: scope, step: steps.count, siblings: siblings)
    }
  }

  private mutating func append(
    _ marker: Marker, layer: Int, classes: [DataClass: Verdict], issues: inout [PolicyIssue]
  ) {
    guard markerSteps.count < MarkSet.maximumCount else {
      issues.append(
        PolicyIssue(
          .value, at: marker.location, "more than \(MarkSet.maximumCount) markers in all layers",
          expected: "fewer"))
      return
    }
    markerSteps.append(steps.count)
    let operation = Operation(
      marker.settings, marker.platform, condition: Operation.Condition(), classes: classes,
      authority: marker.isFile ? .file : .attribute)
    steps.append(
      CompiledPolicy.Step(origin: .marker(marker), layer: layer, scope: .all, operation: operation))
  }

  /// Returns the bits of the sibling names that a rule tests for.
  private mutating func number(
    siblingsOf rule: Rule, known: inout [[UInt8]: Int], issues: inout [PolicyIssue]
  ) -> UInt64 {
    var mask: UInt64 = 0
    for text in rule.conditions.siblings {
      for spelling in Spelling.allCases {
        let name = spelling.spell(Array(text.utf8))
        if known[name] == nil, siblingNames.count < SiblingSet.maximumCount {
          known[name] = siblingNames.count
          siblingNames.append(name)
        }
        guard let bit = known[name] else {
          issues.append(
            PolicyIssue(
              .condition, at: rule.location,
              "more than \(SiblingSet.maximumCount) sibling names in all layers",
              expected: "fewer"))
          return mask
        }
        mask |= 1 << UInt64(bit)
      }
    }
    return mask
  }
}

extension CompiledPolicy {
  /// The tables of all layers, merged: containers and retain by key, pressure by level, quotas by
  /// pattern, classes by class and value.
  struct Tables: Sendable {
    private(set) var classes: [DataClass: Assignment] = [:]
    /// The classes for which a layer permits loss with `allow-loss`.
    private(set) var lossyClasses: Set<DataClass> = []
    private(set) var containers: [ContainerKind: ContainerTerms] = [:]
    private(set) var retain: [RetainedItem: Int64] = [:]
    private(set) var pressure: [Pressure] = []
    private(set) var quotas: [Quota] = []
    private(set) var groupMembers: [String: [String]] = [:]

    init(_ documents: [PolicyDocument]) {
      for document in documents { overlay(document) }
    }

    private mutating func overlay(_ document: PolicyDocument) {
      for (dataClass, settings) in document.classes {
        var assignment = classes[dataClass] ?? Assignment(fields: [], verdict: .silent(dataClass))
        assignment.set(settings.settings)
        classes[dataClass] = assignment
        if settings.allowLoss != nil { lossyClasses.insert(dataClass) }
      }
      for (kind, terms) in document.containers {
        containers[kind] = containers[kind, default: ContainerTerms()].overlaid(by: terms)
      }
      retain.merge(document.retain) { _, later in later }
      groupMembers.merge(document.groupMembers) { _, later in later }
      for level in document.pressure {
        pressure.removeAll { $0.level == level.level }
        pressure.append(level)
      }
      for quota in document.quotas {
        quotas.removeAll { $0.pattern.text == quota.pattern.text }
        quotas.append(quota)
      }
    }

    /// The initial verdict of each class.
    var classVerdicts: [DataClass: Verdict] {
      var verdicts: [DataClass: Verdict] = [:]
      for dataClass in DataClass.allCases {
        verdicts[dataClass] = classes[dataClass]?.verdict ?? .silent(dataClass)
      }
      return verdicts
    }

    /// Returns the initial verdicts of all entries in a container kind.
    func start(_ kind: ContainerKind) -> Verdicts {
      var verdict = classVerdicts[.unknown] ?? .silent()
      if let backup = containers[kind]?.backup {
        verdict.backup = backup.applied(to: verdict.backup)
      }
      return Verdicts(keep: verdict, platform: verdict)
    }
  }
}

// MARK: - Digest

extension CompiledPolicy {
  /// Returns the digest of all files and of the command-line patterns, in order. It is independent
  /// of comments, key order and quoting.
  static func digest(
    _ documents: [PolicyDocument], _ patterns: [CommandLinePattern]
  ) -> Digest {
    var bytes: [UInt8] = []
    for document in documents {
      append("file", to: &bytes)
      append(document.content, to: &bytes)
    }
    for text in patterns.flatMap(\.content) { append(text, to: &bytes) }
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
