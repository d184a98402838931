internal import ArchiveStore
internal import Codecs
internal import Lifecycle
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

extension PurgeJudgement {
  /// Returns the lines that `explain --purge` prints.
  func lines(at now: Timestamp) -> [String] {
    var lines: [String] = []
    if let unit, let unitPath, let place {
      let what = unit.kind == .file ? "" : " with the whole \(unit.kind.rawValue) \(unitPath)"
      lines.append(
        "purge: candidate \(place)\(what), \(Sizes.text(unit.bytes)), order \(unit.terms.order), "
          + PurgeUnit.Age(unit, at: now).words
          + (unit.overQuota > 0 ? ", its app is over its quota" : ""))
      lines.append(
        levels.isEmpty
          ? "deleted at no level: it was used too recently, or no level includes its order"
          : "deleted at \(levels.map(\.rawValue).joined(separator: ", "))")
    } else if let conflict {
      lines.append("purge: not a candidate: \(conflict.words)")
    }
    if let decision { lines.append("decided by \(decision.rule)") }
    if let running { lines.append("not now: \(running)") }
    return lines
  }

  /// Returns the member `purge` of `explain --purge --json`.
  func json(at now: Timestamp) -> JSON {
    var members: [JSON.Member] = [JSON.Member("candidate", .bool(unit != nil))]
    if let unit, let unitPath, let place {
      members += JSON.path(unitPath, named: "unit") + unit.json(at: now)
      members.append(JSON.Member("number", .integer(Int64(place))))
      members.append(JSON.Member("levels", .array(levels.map { .string($0.rawValue) })))
    } else if let conflict {
      members.append(JSON.Member("obstacle", .string(conflict.words)))
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
  /// The reason, as a sentence.
  var words: String {
    switch self {
    case .never: "the policy never purges it"
    case .precious(let dataClass):
      "its class is \(dataClass.rawValue), and no purge rule for it sets 'allow-loss'"
    case .holds(let path): "its unit contains '\(path)', which must not be purged"
    case .mount: "it is a mount point, or on another file system"
    case .own: "it belongs to this program or to a repository"
    case .folder: "a directory is removed only after a purge has emptied it"
    case .mark: "it is the file that marks its directory, and is deleted with it"
    case .linked: "it would be truncated, and it has other hard links"
    case .special: "it uses no space"
    case .missing: "it does not exist"
    }
  }
}
