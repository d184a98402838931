internal import SandboxModel

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
      rule.pattern, in: rule.kinds, isGeneral: isGeneral, at: rule.patternLocation, what: "the rule"
    )
  }

  private mutating func check(_ quota: Quota) {
    check(quota.pattern, in: quota.kinds, isGeneral: true, at: quota.location, what: "the quota")
  }

  private mutating func check(
    _ pattern: Pattern, in kinds: Set<ContainerKind>, isGeneral: Bool, at place: PolicyLocation,
    what: String
  ) {
    let places = document.layouts.flatMap { layout in
      layout.containerKinds.filter(kinds.contains).map { (layout, $0) }
    }
    guard !places.isEmpty else {
      let own = document.layouts.flatMap(\.containerKinds).map(\.rawValue)
      let names = kinds.sorted().map(\.rawValue).joined(separator: ", ")
      issues.append(
        PolicyIssue(
          .unmatchable, at: place,
          "\(what) is for containers that the layout does not have: \(names)",
          expected: "'in' with one of \(own.joined(separator: ", "))"))
      return
    }
    guard isGeneral else { return }
    let shapes = places.map { LayoutShape($0.0, $0.1) }
    guard !shapes.contains(where: { $0.canMatch(pattern) }) else { return }
    let names = shapes.flatMap(\.names).reduce(into: [String]()) { all, name in
      if !all.contains(name) { all.append(name) }
    }
    issues.append(
      PolicyIssue(
        .unmatchable, at: place,
        "'\(pattern.text)' cannot match: the layout does not have its first component",
        expected: "one of \(names.joined(separator: ", ")), or a pattern such as '*/**'"))
  }
}
