internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import DeviceScan
internal import PolicyEngine
internal import Purge
internal import SandboxModel
internal import SystemIO

/// `sandboxctl explain PATH`: shows the rules and marks that decide about an entry.
struct ExplainCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "explain",
      abstract: "Explain the policy decision for a path",
      usage: "sandboxctl explain <path> [--root <dir>] [<options>]",
      discussion: """
        Prints every rule and mark that matches the entry, in order, with its position in the \
        policy and its effect, then two verdicts: sandboxctl's own, and that of the platform. With \
        --purge also prints whether a purge may delete the entry and at which pressure levels, or \
        why not. PATH is a logical path, a real path, or <app>/<path in its data>. It need not \
        exist.

        \(Examples.text([
          "sandboxctl explain --root device apps/org.example.notebook/data/Documents",
          "sandboxctl explain --root device notebook/tmp/x --json",
          "sandboxctl explain --root device notebook/Library/Caches --purge",
        ]))
        """)
  }

  @Argument(help: ArgumentHelp("The path to explain.", valueName: "path"))
  var path: ByteString

  @Flag(help: "Explain whether a purge may delete the entry.")
  var purge = false

  @OptionGroup var verdict: VerdictOptions
  @OptionGroup var device: DeviceOptions
  @OptionGroup var policy: PolicyOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let found = try device.find(for: [path])
    console.warn(ofInterruptedOn: found)
    let compiled = try policy.compile(for: found, output, console)
    let logical = try DevicePath(path, on: found).logical
    let (container, inner) = try found.resolve(logical)
    let destination = try verdict.destination.deciding(for: container.kind)
    let query = DeviceScan.query(inner, in: container, of: found, policy: compiled)
    let explanation = compiled.explain(
      query.query, scanStart: Host.now().seconds, for: destination)
    let database = query.database.map { logical.bytes.parent.appending($0) }
    var verdicts = explanation.verdicts
    if let own = query.purge {
      verdicts.keep.purge = own.keep
      verdicts.platform.purge = own.platform
    }
    let plan = purge ? try PurgePlan.make(found, policy: compiled, judging: container) : nil
    let judgement = plan?.judge(container, inner)
    if output.json {
      let purge = judgement.map { $0.json(at: plan?.request.now ?? Host.now()) }
      try console.result(
        explanation.json(
          logical, verdicts, exists: query.exists, stated: query.stated, database: database,
          for: destination, purge: purge))
    } else {
      try Text(
        explanation, logical, verdicts: verdicts, exists: query.exists, database: database
      ).write(console, destination: destination)
      if let stated = query.stated {
        try console.result(
          "protection \(stated.rawValue), by the file's attribute \(ProtectionClass.attribute)")
      }
      for line in judgement?.lines(at: plan?.request.now ?? Host.now()) ?? [] {
        try console.result(line)
      }
    }
    return .done
  }
}

extension ExplainCommand {
  /// The text output of `explain`: a paragraph for each rule, then the verdicts.
  private struct Text {
    private let explanation: Explanation
    private let path: LogicalPath
    private let verdicts: Verdicts
    private let exists: Bool
    /// The database whose verdicts apply to the entry, if it is its log or its journal.
    private let database: ByteString?

    init(
      _ explanation: Explanation, _ path: LogicalPath, verdicts: Verdicts, exists: Bool,
      database: ByteString?
    ) {
      self.explanation = explanation
      self.path = path
      self.verdicts = verdicts
      self.exists = exists
      self.database = database
    }

    func write(_ console: Console, destination: Destination) throws {
      let facts = explanation.query.facts.type
      let type = facts == .special ? "special file" : facts.rawValue
      try console.result(
        "\(path): \(exists ? "a \(type)" : "does not exist, explained as a \(type)")")
      if let database { try console.result("the rules for its database \(database) decide:") }
      for step in explanation.steps { try write(step, console) }
      try console.result("")
      try write(verdicts.keep, of: "sandboxctl", for: destination, console)
      if verdicts.platform == verdicts.keep {
        try console.result("platform: the same")
      } else {
        try write(verdicts.platform, of: "platform", for: destination, console)
      }
      if verdicts.keep.purge != explanation.verdicts.keep.purge {
        try console.result(
          "its own rules decide about purges: it and the database are deleted if both may be")
      }
      for mark in explanation.overruledMarks {
        let suffix = mark.location.map { ", \($0.text)" } ?? ""
        try console.result("kept despite the mark \(mark.mark), by \(mark.rule)\(suffix)")
      }
    }

    private func write(_ step: Explanation.Step, _ console: Console) throws {
      let suffix = step.location.map { "  \($0.text)" } ?? ""
      try console.result("")
      try console.result(step.kind == .start ? start : "\(step.kind.rawValue) \(step.id)\(suffix)")
      if !step.bearers.isEmpty {
        let paths = explanation.bearers(of: step, path).map(\.description).joined(separator: ", ")
        try console.result("  set on \(paths)")
      }
      try console.result("  \(outcome(of: step))")
      if let why = step.why { try console.result("  why: \(why)") }
      if let source = step.source { try console.result("  source: \(source)") }
    }

    private var start: String {
      switch explanation.query.kind {
      case .folder: "start: a directory"
      case .extension: "start: an extension container"
      case let kind: "start: a \(kind.rawValue) container"
      }
    }

    private func outcome(of step: Explanation.Step) -> String {
      let changes = step.keep.map(\.description).joined(separator: ", ")
      let platform = step.platform.map(\.description).joined(separator: ", ")
      switch step.outcome {
      case .applied, .limited:
        if step.keep == step.platform { return "decides \(changes.isEmpty ? "nothing" : changes)" }
        let parts = [
          changes.isEmpty ? nil : "decides \(changes)",
          platform.isEmpty ? nil : "on the platform \(platform)",
        ]
        return parts.compactMap { $0 }.joined(separator: "; ")
      case .refused(let dataClass):
        return "ignored: a mark cannot exclude \(dataClass.rawValue)"
      case .notMet(let conditions): return "not met: \(conditions)"
      }
    }

    private func write(
      _ verdict: Verdict, of name: String, for destination: Destination, _ console: Console
    ) throws {
      try console.result(
        "\(name): \(className(verdict)), backup \(verdict.backup.mode(for: destination).rawValue), "
          + "update \(verdict.update.rawValue), purge \(verdict.purge.description), "
          + "restore \(verdict.restore.rawValue)"
          + (verdict.protection.map { ", protection \($0.rawValue)" } ?? ""))
    }

    private func className(_ verdict: Verdict) -> String {
      verdict.className(isRoot: explanation.query.path.isEmpty) ?? "no class"
    }
  }
}

extension Explanation {
  /// Returns the paths of the entries that have a step's mark, for an entry at a path.
  func bearers(of step: Step, _ path: LogicalPath) -> [ByteString] {
    let names = path.bytes.components
    return step.bearers.map { depth in
      let count = names.count - query.path.count + depth
      return ByteString(joining: names.prefix(count))
    }
  }

  /// Returns the output of `explain --json`.
  func json(
    _ path: LogicalPath, _ verdicts: Verdicts, exists: Bool, stated: ProtectionClass? = nil,
    database: ByteString? = nil, for destination: Destination, purge: JSON? = nil
  ) -> JSON {
    let backup = verdicts.keep.backup.mode(for: destination)
    let isFile = query.facts.type == .file || query.facts.type == .database
    var decided: [JSON.Member] = []
    if let database { decided.append(JSON.Member("database", .object(JSON.path(database)))) }
    return .object(
      JSON.path(path.bytes) + [
        JSON.Member("exists", .bool(exists)),
        JSON.Member("judged_as", .string(query.facts.type.rawValue)),
        JSON.Member("steps", .array(steps.map { $0.json(bearers(of: $0, path)) })),
        JSON.Member("backup", .string(backup.rawValue)),
        JSON.Member("verdict", .object(verdicts.keep.members(isRoot: query.path.isEmpty))),
        JSON.Member("platform", .object(verdicts.platform.members(isRoot: query.path.isEmpty))),
        JSON.Member(
          "overruled_marks",
          .array(
            overruledMarks.map {
              ["mark": .string($0.mark), "rule": .string($0.rule), "at": .location($0.location)]
            })),
      ] + (isFile ? verdicts.keep.protectionMembers(stated: stated) : [])
        + decided + (purge.map { [JSON.Member("purge", $0)] } ?? []))
  }
}

extension Explanation.Step {
  fileprivate func json(_ bearers: [ByteString]) -> JSON {
    var members = [
      JSON.Member("kind", .string(kind.rawValue)), JSON.Member("id", .string(id)),
      JSON.Member("at", .location(location)), JSON.Member("layer", .string(layer)),
      JSON.Member("outcome", .string(outcome.word)), JSON.Member("decides", keep.json),
      JSON.Member("platform", platform.json),
    ]
    if !bearers.isEmpty {
      members.append(JSON.Member("borne_by", .array(bearers.map { .object(JSON.path($0)) })))
    }
    if let why { members.append(JSON.Member("why", .string(why))) }
    if let source { members.append(JSON.Member("source", .string(source))) }
    return .object(members)
  }
}

extension Explanation.Outcome {
  /// The word in the output.
  var word: String {
    switch self {
    case .applied: "applied"
    case .limited: "limited"
    case .refused: "refused"
    case .notMet: "not-met"
    }
  }
}

extension [Explanation.Change] {
  var json: JSON { .object(map { JSON.Member($0.key, .string($0.value)) }) }
}

extension PurgePlan.Judgement {
  /// Returns the lines that `explain --purge` prints.
  func lines(at now: Timestamp) -> [String] {
    var lines: [String] = []
    if let unit, let unitPath, let position {
      let what = unit.kind == .file ? "" : " with the whole \(unit.kind.rawValue) \(unitPath)"
      lines.append(
        "purge: candidate \(position) of \(candidates) of \(party)\(what), "
          + "\(Sizes.text(unit.bytes)), "
          + "order \(unit.terms.order), " + PurgeUnit.Age(unit, at: now).words
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
    if let unit, let unitPath, let position {
      members += JSON.path(unitPath, named: "unit") + unit.json(at: now)
      members.append(JSON.Member("number", .integer(Int64(position))))
      members.append(JSON.Member("candidates", .integer(Int64(candidates))))
      members.append(JSON.Member("levels", .array(levels.map { .string($0.rawValue) })))
    } else if let conflict {
      members.append(JSON.Member("obstacle", .string(conflict.words)))
    }
    if let decision {
      members.append(JSON.Member("rule", .string(decision.rule)))
      members.append(JSON.Member("at", .location(decision.location)))
    }
    if let running { members.append(JSON.Member("running", .string(running))) }
    return .object(members)
  }
}

extension PurgePlan.Conflict {
  /// The reason, as a sentence.
  var words: String {
    switch self {
    case .never: "the policy never purges it"
    case .precious(let dataClass):
      "its class is \(dataClass.rawValue), and no purge rule for it sets 'allow-loss'"
    case .holds(let path): "its unit contains '\(path)', which must not be purged"
    case .mount: "it is a mount point, or on another file system"
    case .own: "it belongs to this program or to a repository"
    case .directory: "a directory is removed only after a purge has emptied it"
    case .mark: "it is the file that marks its directory, and is deleted with it"
    case .linked: "it would be truncated, and it has other hard links"
    case .moved: "it is a link to the directory that the app uses in its place"
    case .fixed(let path):
      "'\(path)' is immutable or append-only, until 'chattr -ia' clears its flags"
    case .indivisible:
      "it, or its container, is a repository or a database whose files belong together, "
        + "and no purge deletes the container's own directory, or empties such files one by one"
    case .special: "it uses no space"
    case .missing: "it does not exist"
    }
  }
}
