package import SandboxModel

/// The rule or marker that decided whether an entry may be purged.
package struct PurgeDecision: Sendable, Hashable {
  /// The identifier of the rule or marker, or the container kind if none matched.
  package let rule: String
  /// The position, or nil for the container's initial verdict.
  package let location: PolicyLocation?
  /// The reason given in the policy.
  package let why: String?
  /// Whether the policy permits the loss of precious data with `allow-loss`.
  package let allowsLoss: Bool
}

extension CompiledPolicy {
  /// Returns the last rule or marker that set whether an entry may be purged.
  package func purgeDecision(on query: EntryQuery, scanStart: Int64 = 0) -> PurgeDecision {
    let explanation = explain(query, scanStart: scanStart)
    let matched = matching(query, depth: query.path.count)
    // The first step is the container's initial verdict; the others are the matching steps in
    // order.
    let last = explanation.steps.indices.last { index in
      let step = explanation.steps[index]
      return step.outcome == .applied && step.keep.contains { $0.key == "purge" }
    }
    let place = last ?? 0
    let rule = place == 0 ? nil : steps[matched[place - 1]].rule
    let dataClass = explanation.verdicts.keep.dataClass
    return PurgeDecision(
      rule: explanation.steps[place].id, location: explanation.steps[place].location,
      why: explanation.steps[place].why,
      allowsLoss: rule?.allowLoss != nil || lossyClasses.contains(dataClass))
  }

  /// Returns the directories that rules name by the components before the first wildcard. A purge
  /// does not delete them.
  package func namedDirectories(_ kind: ContainerKind) -> Set<[[UInt8]]> {
    Set(
      steps.compactMap(\.rule).filter { $0.kinds.contains(kind) }.map(\.pattern.fixedPrefix))
  }
}
