internal import Codecs
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// The text output of `explain`: a paragraph for each rule, then the verdicts.
struct ExplanationText {
  private let explanation: Explanation
  private let path: LogicalPath
  private let exists: Bool

  init(_ explanation: Explanation, _ path: LogicalPath, exists: Bool) {
    self.explanation = explanation
    self.path = path
    self.exists = exists
  }

  func write(_ console: Console, destination: Destination) throws {
    let type = explanation.query.facts.type.rawValue
    try console.result(
      "\(path): \(exists ? "a \(type)" : "does not exist, explained as a \(type)")")
    for step in explanation.steps { try write(step, console) }
    try console.result("")
    try write(explanation.verdicts.keep, of: "sandboxctl", for: destination, console)
    if explanation.verdicts.platform == explanation.verdicts.keep {
      try console.result("platform: the same")
    } else {
      try write(explanation.verdicts.platform, of: "platform", for: destination, console)
    }
    for mark in explanation.overruledMarks {
      let place = mark.location.map { ", \($0)" } ?? ""
      try console.result("kept despite the mark \(mark.mark), by \(mark.rule)\(place)")
    }
  }

  private func write(_ step: Explanation.Step, _ console: Console) throws {
    let place = step.location.map { "  \($0)" } ?? ""
    try console.result("")
    try console.result(step.kind == .start ? start : "\(step.kind.rawValue) \(step.id)\(place)")
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
        + "restore \(verdict.restore.rawValue)")
  }
}

extension ExplanationText {
  private func className(_ verdict: Verdict) -> String {
    verdict.className(isRoot: explanation.query.path.isEmpty) ?? "no class"
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
    _ path: LogicalPath, exists: Bool, for destination: Destination, purge: JSON? = nil
  ) -> JSON {
    let backup = verdicts.keep.backup.mode(for: destination)
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
              ["mark": .string($0.mark), "rule": .string($0.rule), "at": .place($0.location)]
            })),
      ] + (purge.map { [JSON.Member("purge", $0)] } ?? []))
  }
}

extension Explanation.Step {
  fileprivate func json(_ bearers: [ByteString]) -> JSON {
    var members = [
      JSON.Member("kind", .string(kind.rawValue)), JSON.Member("id", .string(id)),
      JSON.Member("at", .place(location)), JSON.Member("layer", .string(layer)),
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

extension JSON {
  /// Returns a location in a policy file; null if there is none.
  static func place(_ location: PolicyLocation?) -> JSON {
    guard let location else { return .null }
    return [
      "file": .string(location.file), "line": .integer(Int64(location.line)),
      "column": .integer(Int64(location.column)),
    ]
  }
}
