public import SandboxModel

/// What decided whether an entry may be deleted to gain space.
public struct PurgeDecision: Sendable, Hashable {
  /// The rule's or mark's name; of the start, the kind of container.
  public let rule: String
  /// Where it stands; nothing for a start that no file speaks of.
  public let location: PolicyLocation?
  /// Why it is so, as the policy says.
  public let why: String?
  /// Whether the policy says by `allow-loss` that what nobody can make again may go.
  public let allowsLoss: Bool
}

extension CompiledPolicy {
  /// What decided whether an entry may be deleted to gain space: the last rule or mark that set it.
  public func purgeDecision(on query: EntryQuery, scanStart: Int64 = 0) -> PurgeDecision {
    let explanation = explain(query, scanStart: scanStart)
    let matched = matching(query, depth: query.path.count)
    // The first step is the start, the others are those that match, in their order.
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

  /// The directories that rules name by the components before their first wildcard, as components: a
  /// purge leaves them in place.
  public func namedDirectories(_ kind: ContainerKind) -> Set<[[UInt8]]> {
    Set(
      steps.compactMap(\.rule).filter { $0.kinds.contains(kind) }.map(\.pattern.fixedPrefix))
  }
}
