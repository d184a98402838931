internal import ArchiveStore
internal import Audit
internal import Codecs
internal import SandboxModel
internal import SystemIO

extension AuditReport {
  /// Writes the findings by rule, the most severe first, and for each rule the largest, with the
  /// commands that fix them.
  func writeText(_ console: Console, listsAll: Bool, isQuiet: Bool) throws {
    for level in AuditLevel.allCases.reversed() {
      for rule in AuditRule.all where rule.level == level {
        let found = findings.filter { $0.rule == rule }
        if found.isEmpty { continue }
        try write(found, of: rule, console, listsAll: listsAll)
      }
    }
    try console.result(summary)
    if isQuiet { return }
    var reasons: [(reason: String, rules: [String])] = []
    for rule in skipped {
      if let number = reasons.firstIndex(where: { $0.reason == rule.reason }) {
        reasons[number].rules.append(rule.rule.id)
      } else {
        reasons.append((rule.reason, [rule.rule.id]))
      }
    }
    for (reason, rules) in reasons {
      console.note("not applied: \(rules.joined(separator: ", ")): \(reason)")
    }
  }

  private func write(
    _ found: [AuditFinding], of rule: AuditRule, _ console: Console, listsAll: Bool
  ) throws {
    let bytes = found.lazy.map(\.bytes).clampedSum
    let size = bytes > 0 ? ", \(Sizes.text(bytes))" : ""
    try console.result(
      "\(rule.level.rawValue) \(rule.id): \(rule.title) (\(Sizes.count(found.count))\(size))")
    for line in Self.wrapped(rule.advice) { try console.result("  " + line) }
    try console.result("  source: \(rule.source)")
    // A finding without bytes is not an empty file: it is about a declaration.
    let excerpt = ListExcerpt(found, all: listsAll, isEmpty: { _ in false }, size: \.bytes)
    try console.list(excerpt, after: "  ", line: Self.text)
    if let omission = omitted[rule.id] {
      try console.result(
        "  \(Sizes.count(omission.count)) further findings are not listed, "
          + Sizes.text(omission.bytes))
    }
    try console.result("")
  }

  private static func text(_ finding: AuditFinding) -> String {
    let size = finding.files > 0 ? Sizes.text(finding.bytes) : "-"
    let slash = finding.isDirectory ? "/" : ""
    let detail = finding.detail.isEmpty ? "" : ": \(finding.detail)"
    return String(repeating: " ", count: max(0, 9 - size.count)) + size
      + "  \(finding.path)\(slash)\(ByteString(detail))\n"
      + String(repeating: " ", count: 15) + finding.command
  }

  /// Returns a text in lines of at most 96 characters.
  private static func wrapped(_ text: String) -> [String] {
    var lines = [""]
    for word in text.split(separator: " ") {
      if let last = lines.last, !last.isEmpty, last.count + word.count + 1 > 96 { lines.append("") }
      let end = lines.count - 1
      lines[end] += (lines[end].isEmpty ? "" : " ") + word
    }
    return lines
  }

  /// The last line: "2 errors, 1 warning; 3 known findings are not shown".
  private var summary: String {
    let counts = AuditLevel.allCases.reversed().compactMap { level in
      let number = count(of: level)
      return number > 0 ? Sizes.count(number, level.rawValue) : nil
    }
    let text = counts.isEmpty ? "no findings" : counts.joined(separator: ", ")
    guard known > 0 else { return text }
    let verb = known == 1 ? "is" : "are"
    return "\(text); \(Sizes.count(known, "known finding")) \(verb) not shown"
  }

  /// Writes a line for each finding, then the summary.
  func writeJSON(_ console: Console) throws {
    for finding in findings { try console.result(Self.json(finding)) }
    let counts = AuditLevel.allCases.map {
      JSON.Member($0.rawValue, .integer(Int64(count(of: $0))))
    }
    let omissions = omitted.sorted { $0.key < $1.key }.map { rule, omission -> JSON in
      [
        "rule": .string(rule), "count": .integer(Int64(omission.count)),
        "bytes": .integer(Int64(clamping: omission.bytes)),
        "fingerprints": .array(omission.fingerprints.map { .string($0.description) }),
      ]
    }
    let unapplied = skipped.map { rule -> JSON in
      ["rule": .string(rule.rule.id), "reason": .string(rule.reason)]
    }
    try console.result([
      "summary": .object(
        counts + [
          JSON.Member("known", .integer(Int64(known))),
          JSON.Member("not_listed", .array(omissions)),
          JSON.Member("not_applied", .array(unapplied)),
          JSON.Member("not_examined", RealPaths(device).json(unusable)),
        ])
    ])
  }

  private static func json(_ finding: AuditFinding) -> JSON {
    var members = [
      JSON.Member("rule", .string(finding.rule.id)),
      JSON.Member("level", .string(finding.rule.level.rawValue)),
      JSON.Member("title", .string(finding.rule.title)),
    ]
    members += JSON.path(finding.path)
    members += JSON.path(finding.realPath, named: "real_path")
    members.append(JSON.Member("owner", .text(finding.owner)))
    members += [
      JSON.Member("files", .integer(Int64(finding.files))),
      JSON.Member("bytes", .integer(Int64(clamping: finding.bytes))),
      JSON.Member("detail", .string(finding.detail)),
      JSON.Member("command", .string(finding.command)),
      JSON.Member("source", .string(finding.rule.source)),
      JSON.Member("url", .string(finding.rule.url)),
      JSON.Member("fingerprint", .string(finding.fingerprint.description)),
    ]
    return .object(members)
  }
}
