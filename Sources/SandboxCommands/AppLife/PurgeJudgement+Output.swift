internal import ArchiveStore
internal import Codecs
internal import Lifecycle
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

extension PurgeJudgement {
  /// What `explain --purge` says, a line each.
  func lines(at now: Timestamp) -> [String] {
    var lines: [String] = []
    if let unit, let unitPath, let place {
      let what = unit.kind == .file ? "" : " with all of the \(unit.kind.rawValue) \(unitPath)"
      lines.append(
        "purge: candidate \(place)\(what), \(Sizes.text(unit.bytes)), order \(unit.terms.order), "
          + PurgeUnit.Age(unit, at: now).words
          + (unit.overQuota > 0 ? ", its app is over its quota" : ""))
      lines.append(
        levels.isEmpty
          ? "it goes at no level: it was used too lately, or no level has its order"
          : "it goes at \(levels.map(\.rawValue).joined(separator: ", "))")
    } else if let obstacle {
      lines.append("purge: no candidate: \(obstacle.words)")
    }
    if let decision { lines.append("decided by \(decision.rule)") }
    if let running { lines.append("not now: \(running)") }
    return lines
  }

  /// The member of `explain --purge --json`.
  func json(at now: Timestamp) -> JSON {
    var members: [JSON.Member] = [JSON.Member("candidate", .bool(unit != nil))]
    if let unit, let unitPath, let place {
      members += JSON.path(unitPath, named: "unit") + unit.json(at: now)
      members.append(JSON.Member("number", .integer(Int64(place))))
      members.append(JSON.Member("levels", .array(levels.map { .string($0.rawValue) })))
    } else if let obstacle {
      members.append(JSON.Member("obstacle", .string(obstacle.words)))
    }
    if let decision {
      members.append(JSON.Member("rule", .string(decision.rule)))
      members.append(JSON.Member("at", .place(decision.location)))
    }
    if let running { members.append(JSON.Member("running", .string(running))) }
    return .object(members)
  }
}

extension PurgeConflict {
  /// Why something is no candidate.
  var words: String {
    switch self {
    case .never: "the policy never lets it go"
    case .precious(let dataClass):
      "it is \(dataClass.rawValue), and no rule that lets it go says 'allow-loss'"
    case .holds(let path): "it goes together with '\(path)', which may not go"
    case .mount: "another file system begins there, or holds it"
    case .own: "it is this program's own, or a repository"
    case .folder: "a directory goes only when a purge has emptied it"
    case .mark: "it is the mark by which its directory is known, and goes with it"
    case .linked: "it would be emptied, and it has other names"
    case .special: "it takes no space"
    case .missing: "it is not there"
    }
  }
}
