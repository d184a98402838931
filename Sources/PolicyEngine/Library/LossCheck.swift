internal import SandboxModel

/// Finds rules that make precious data purgeable or discard it on update.
///
/// A rule that sets a class is checked by itself. For any other rule, earlier layers and rules
/// determine the class: `LossCheck.Search` looks for a path that the rule matches and that has a
/// precious class. Each reported loss is therefore real and has a path as an example. The `finally`
/// sections of extended policies are checked again, since they apply after the file's own rules.
struct LossCheck {
  private let policy: CompiledPolicy
  /// The classes for which the file permits loss with a reason.
  private let allowed: Set<DataClass>
  /// The layout, for an overlay over several layouts.
  private let layoutSuffix: String
  private var search: Search
  private(set) var issues: [PolicyIssue] = []

  init(_ document: PolicyDocument, _ policy: CompiledPolicy) {
    self.policy = policy
    allowed = Set(document.classes.filter { $0.value.allowLoss != nil }.keys)
    let layouts = Layout.allCases.filter { document.isOverlay(for: $0) }
    let layout = layouts.count > 1 ? policy.layout : nil
    layoutSuffix = layout.map { " over the layout \($0.rawValue)" } ?? ""
    search = Search(policy)
    for (dataClass, entry) in document.classes where entry.allowLoss == nil {
      check(dataClass, entry)
    }
    for (index, step) in policy.steps.enumerated()
    where step.location.file == document.source.name || policy.layers[step.layer].part == .finally {
      switch step.origin {
      case .rule(let rule): if rule.allowLoss == nil { check(rule, index) }
      case .marker(let marker): check(marker, index)
      }
    }
  }

  private mutating func check(_ dataClass: DataClass, _ entry: PolicyDocument.ClassSettings) {
    guard dataClass.isPrecious else { return }
    let isPurged = entry.settings.purge.map { $0 != .never } ?? false
    guard isPurged || entry.settings.update == .discard else { return }
    add(
      at: entry.location, after: "the class \(dataClass.rawValue)", isPurged: isPurged,
      data: dataClass.rawValue)
  }

  private mutating func check(_ marker: Marker, _ index: Int) {
    let assignment = policy.operations[index].keep
    guard assignment.fields.contains(.purge) else { return }
    var verdict = Verdict.silent()
    assignment.apply(to: &verdict)
    guard verdict.losesSomething else { return }
    issues.append(
      PolicyIssue(
        .loss, at: marker.location,
        "the marker '\(marker.id)' makes \(verdict.dataClass.rawValue) below a cache purgeable",
        expected: "'class: cache' in addition to 'purge'"))
  }

  private mutating func check(_ rule: Rule, _ index: Int) {
    let keep = policy.operations[index].keep
    let what = "the rule '\(rule.id)'"
    if keep.fields.contains(.dataClass) {
      let saysIt = rule.settings.purge != nil || rule.settings.update != nil
      if keep.verdict.losesSomething, saysIt || !allowed.contains(keep.verdict.dataClass) {
        let isPurged = keep.verdict.purge != .never
        add(
          at: rule.location, after: what, isPurged: isPurged, data: keep.verdict.dataClass.rawValue)
      }
      return
    }
    let purges = keep.fields.contains(.purge) && keep.verdict.purge != .never
    let discards = keep.fields.contains(.update) && keep.verdict.update == .discard
    guard purges || discards else { return }
    switch search.find(rule, index) {
    case .none: break
    case .path(let path, let dataClass):
      let data = "\(dataClass.rawValue) (such as '\(PolicyIssue.text(of: path))')"
      add(at: rule.location, after: what, isPurged: purges, data: data)
    case .undecided:
      add(at: rule.location, after: what, isPurged: purges, data: "possibly precious data")
    }
  }

  private mutating func add(
    at location: PolicyLocation, after what: String, isPurged: Bool, data: String
  ) {
    let outcome = isPurged ? "purgeable" : "discarded on update"
    issues.append(
      PolicyIssue(
        .loss, at: location, "after \(what), \(data) is \(outcome)\(self.layoutSuffix)",
        expected: "a class that may be lost, such as cache, or 'allow-loss: REASON'"))
  }
}
