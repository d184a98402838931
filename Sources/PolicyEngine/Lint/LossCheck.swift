internal import SandboxModel

/// Finds rules after which something that nobody can make again is purgeable or discarded.
///
/// A rule that sets a class is judged by itself. For one that does not, the class is what earlier
/// layers and rules gave: `LossSearch` looks for a path that the rule means and whose class is
/// precious there. So each loss that is named is real, with a path to show for it. The last parts of
/// the policies that the file extends are judged again, since its own rules stand before them.
struct LossCheck {
  private let policy: CompiledPolicy
  /// The classes that the file lets go for a reason that it gives.
  private let allowed: Set<DataClass>
  /// Where it lies, of an overlay for several layouts.
  private let place: String
  private var search: LossSearch
  private(set) var issues: [PolicyIssue] = []

  init(_ document: PolicyDocument, _ policy: CompiledPolicy) {
    self.policy = policy
    allowed = Set(document.classes.filter { $0.value.allowLoss != nil }.keys)
    let layouts = Layout.allCases.filter { document.isOverlay(for: $0) }
    let layout = layouts.count > 1 ? policy.layout : nil
    place = layout.map { " over the layout \($0.rawValue)" } ?? ""
    search = LossSearch(policy)
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
    add(entry.location, "the class \(dataClass.rawValue)", isPurged: isPurged, dataClass.rawValue)
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
        expected: "'class: cache' beside 'purge'"))
  }

  private mutating func check(_ rule: Rule, _ index: Int) {
    let keep = policy.operations[index].keep
    let what = "the rule '\(rule.id)'"
    if keep.fields.contains(.dataClass) {
      let saysIt = rule.settings.purge != nil || rule.settings.update != nil
      if keep.verdict.losesSomething, saysIt || !allowed.contains(keep.verdict.dataClass) {
        let isPurged = keep.verdict.purge != .never
        add(rule.location, what, isPurged: isPurged, keep.verdict.dataClass.rawValue)
      }
      return
    }
    let purges = keep.fields.contains(.purge) && keep.verdict.purge != .never
    let discards = keep.fields.contains(.update) && keep.verdict.update == .discard
    guard purges || discards else { return }
    switch search.find(rule, index) {
    case .none: break
    case .path(let path, let dataClass):
      let data = "\(dataClass.rawValue) (such as '\(PathText.text(path))')"
      add(rule.location, what, isPurged: purges, data)
    case .doubt: add(rule.location, what, isPurged: purges, "perhaps something precious")
    }
  }

  private mutating func add(
    _ place: PolicyLocation, _ what: String, isPurged: Bool, _ data: String
  ) {
    let fate = isPurged ? "purgeable" : "discarded on update"
    issues.append(
      PolicyIssue(
        .loss, at: place, "after \(what), \(data) is \(fate)\(self.place)",
        expected: "a class that may be lost, such as cache, or 'allow-loss: REASON'"))
  }
}
