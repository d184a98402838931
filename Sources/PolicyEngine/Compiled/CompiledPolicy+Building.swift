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
            rule.settings, rule.platform, condition: EntryCondition(rule.conditions),
            classes: classes)
          let mask = number(siblingsOf: rule, known: &siblings, issues: &issues)
          insert(rule, scope, siblings: mask)
          steps.append(
            CompiledStep(origin: .rule(rule), layer: index, scope: scope, operation: operation))
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
    _ rule: Rule, _ scope: CompiledStep.Scope, siblings: UInt64
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
      marker.settings, marker.platform, condition: EntryCondition(), classes: classes,
      authority: marker.isFile ? .file : .attribute)
    steps.append(
      CompiledStep(origin: .marker(marker), layer: layer, scope: .all, operation: operation))
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
  /// Compiles layers.
  ///
  /// - Returns: The policy, and the problems that prevent its use.
  static func compile(
    _ selection: LayerSelection, name: String, title: String? = nil, layout: Layout?,
    osVersion: OSVersion?, allVersions: Bool = false
  ) -> (CompiledPolicy, [PolicyIssue]) {
    var parts = Parts(
      name: name, title: title, layout: layout, osVersion: osVersion, layers: selection.layers,
      tables: PolicyTables(selection.documents))
    let issues = parts.assemble(allVersions: allVersions)
    let digest = CanonicalContent.digest(selection.documents, selection.patterns)
    return (CompiledPolicy(parts, digest: digest), issues)
  }
}
