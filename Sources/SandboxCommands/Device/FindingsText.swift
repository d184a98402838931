internal import SandboxModel

/// The text output of the findings on a device: by kind, with counts, kinds with warnings first.
struct FindingsText {
  private let kinds: [(code: Finding.Code, findings: [Finding])]
  private let listsAll: Bool

  init(_ findings: [Finding], listsAll: Bool) {
    self.listsAll = listsAll
    kinds = Dictionary(grouping: findings, by: \.code).map { ($0, $1.sorted()) }.sorted {
      (Self.rank($0.findings), $1.findings.count, $0.code.rawValue)
        < (Self.rank($1.findings), $0.findings.count, $1.code.rawValue)
    }
  }

  /// Returns 0 if there is a warning among the findings, otherwise 1.
  private static func rank(_ findings: [Finding]) -> Int {
    findings.contains { $0.severity == .warning } ? 0 : 1
  }

  func write(_ console: Console) throws {
    for (code, findings) in kinds {
      let severity = Self.rank(findings) == 0 ? "warning" : "note"
      try console.result("")
      try console.result("  \(code.rawValue): \(Sizes.count(findings.count)) (\(severity))")
      let excerpt = ListExcerpt(findings, all: listsAll)
      for finding in excerpt.shown {
        try console.result("    \(finding.path): \(finding.reason)")
      }
      if let remainder = excerpt.remainder { try console.result("    " + remainder) }
    }
  }
}
