internal import Codecs
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// An explanation as a person reads it: a paragraph for each rule, then the verdicts.
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
    try console.result("\(path): \(exists ? "a \(type)" : "not there, explained as a \(type)")")
    for step in explanation.steps { try write(step, console) }
    try console.result("")
    try write("sandboxctl", explanation.verdicts.keep, destination, console)
    if explanation.verdicts.platform != explanation.verdicts.keep {
      try write("platform", explanation.verdicts.platform, destination, console)
    }
    for mark in explanation.overruledMarks {
      let place = mark.location.map { ", \($0)" } ?? ""
      try console.result("kept despite the mark \(mark.mark), by \(mark.rule)\(place)")
    }
  }

  private func write(_ step: Explanation.Step, _ console: Console) throws {
    let place = step.location.map { "  \($0)" } ?? ""
    try console.result("")
    try console.result("\(step.kind.rawValue) \(step.id)\(place)")
    try console.result("  \(outcome(of: step))")
    if let why = step.why { try console.result("  why: \(why)") }
    if let source = step.source { try console.result("  source: \(source)") }
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
      return "does not count: a mark takes no \(dataClass.rawValue) away"
    case .notMet(let conditions): return "does not hold: \(conditions)"
    }
  }

  private func write(
    _ name: String, _ verdict: Verdict, _ destination: Destination, _ console: Console
  ) throws {
    try console.result(
      "\(name): \(verdict.dataClass.rawValue), backup \(verdict.backup.mode(for: destination).rawValue), "
        + "update \(verdict.update.rawValue), purge \(verdict.purge.description), "
        + "restore \(verdict.restore.rawValue)")
  }
}

extension Explanation {
  /// The answer of `explain --json`.
  func json(_ path: ByteString, exists: Bool) -> JSON {
    .object(
      JSON.path(path) + [
        JSON.Member("exists", .bool(exists)),
        JSON.Member("type", .string(query.facts.type.rawValue)),
        JSON.Member("steps", .array(steps.map(\.json))),
        JSON.Member("verdict", .object(verdicts.keep.members)),
        JSON.Member("platform", .object(verdicts.platform.members)),
        JSON.Member(
          "overruled_marks",
          .array(
            overruledMarks.map {
              ["mark": .string($0.mark), "rule": .string($0.rule), "at": .place($0.location)]
            })),
      ])
  }
}

extension Explanation.Step {
  var json: JSON {
    var members = [
      JSON.Member("kind", .string(kind.rawValue)), JSON.Member("id", .string(id)),
      JSON.Member("at", .place(location)), JSON.Member("layer", .string(layer)),
      JSON.Member("outcome", .string(outcome.word)), JSON.Member("decides", keep.json),
      JSON.Member("platform", platform.json),
    ]
    if let why { members.append(JSON.Member("why", .string(why))) }
    if let source { members.append(JSON.Member("source", .string(source))) }
    return .object(members)
  }
}

extension Explanation.Outcome {
  /// The word of output.
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
  /// A place in a policy file, null where there is none.
  static func place(_ location: PolicyLocation?) -> JSON {
    location.map { .string($0.description) } ?? .null
  }
}
