internal import ArchiveStore
internal import Codecs
internal import DeviceScan
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// The output about directories that are kept although their names suggest a cache.
struct CacheNamesReport {
  private let findings: [CacheNameFinding]
  private let layout: Layout

  init(_ findings: [CacheNameFinding], on layout: Layout) {
    (self.findings, self.layout) = (findings, layout)
  }

  /// Searches a scan of all containers.
  init(_ scan: DeviceScan) { self.init(scan.cacheNames(), on: scan.device.layout) }

  /// The number and the totals of the findings of one kind.
  private struct Sum {
    let kind: CacheName
    let directories: Int
    let totals: EntryTotals

    init?(_ kind: CacheName, of findings: [CacheNameFinding]) {
      let found = findings.filter { $0.kind == kind }
      if found.isEmpty { return nil }
      self.kind = kind
      directories = found.count
      totals = CacheNamesReport.totals(found)
    }
  }

  private var sums: [Sum] { CacheName.allCases.compactMap { Sum($0, of: findings) } }

  private static func totals(_ findings: [CacheNameFinding]) -> EntryTotals {
    findings.reduce(into: EntryTotals()) { $0.add($1.totals) }
  }

  /// A line about the number of findings, or nil if there are none.
  var summary: String? {
    if findings.isEmpty { return nil }
    let subject = findings.count == 1 ? "its name suggests" : "their names suggest"
    return "\(Sizes.count(findings.count, "directory")) kept although \(subject) a cache: "
      + Self.totals(findings).text
  }

  /// Prints a note that refers to the list, if there are findings.
  func note(_ console: Console) {
    guard let summary else { return }
    console.note("\(summary); 'classify --findings' lists them")
  }

  /// Prints the findings by kind, the largest, and a rule for the largest.
  func write(_ console: Console, listsAll: Bool) throws {
    guard let summary else {
      return try console.result("no directory is kept although its name suggests a cache")
    }
    try console.result(summary)
    for sum in sums {
      try console.result(
        "  \(sum.kind.rawValue): \(Sizes.count(sum.directories, "directory")), "
          + sum.totals.text)
    }
    try console.result("")
    let sorted = findings.sorted { $1.totals.bytes < $0.totals.bytes }
    let excerpt = ListExcerpt(sorted, all: listsAll, size: \.totals.bytes)
    try console.list(excerpt, after: "  ") { Self.line($0) }
    guard let largest = sorted.first else { return }
    try console.result("")
    try console.result("A policy file that excludes the largest one from backups, for example")
    try console.result("~/.config/sandboxctl/policies/caches.yaml (see sandboxctl-policy(5)):")
    try console.result("")
    for line in CacheNameRule(largest).file(for: layout) { try console.result("  " + line) }
  }

  private static func line(_ finding: CacheNameFinding) -> String {
    let size = Sizes.text(finding.totals.bytes)
    let name = finding.dataClass.rawValue
    return String(repeating: " ", count: max(0, 9 - size.count)) + size + "  "
      + name + String(repeating: " ", count: max(0, 11 - name.count))
      + "  \(finding.logicalPath)/"
  }

  /// Prints a line of JSON for each finding, and one for each kind.
  func writeJSON(_ console: Console) throws {
    for finding in findings { try console.result(Self.json(finding)) }
    for sum in sums {
      try console.result(.object([JSON.Member("finding", "cache-name")] + Self.members(sum)))
    }
  }

  private static func json(_ finding: CacheNameFinding) -> JSON {
    let rule = CacheNameRule(finding)
    var members: [JSON.Member] = [
      JSON.Member("finding", "cache-name"), JSON.Member("kind", .string(finding.kind.rawValue)),
    ]
    members += JSON.path(finding.logicalPath)
    members += JSON.path(
      finding.container.absolutePath.appending(finding.path), named: "real_path")
    members += [
      JSON.Member("class", .string(finding.dataClass.rawValue)),
      JSON.Member("files", .integer(Int64(finding.totals.files))),
      JSON.Member("bytes", .integer(Int64(clamping: finding.totals.bytes))),
      JSON.Member("in", .string(finding.container.kind.rawValue)),
      JSON.Member("match", .string(rule.match)),
    ]
    if let (key, name) = rule.party { members.append(JSON.Member(key, .string(name))) }
    return .object(members)
  }

  private static func members(_ sum: Sum) -> [JSON.Member] {
    [
      JSON.Member("kind", .string(sum.kind.rawValue)),
      JSON.Member("directories", .integer(Int64(sum.directories))),
      JSON.Member("files", .integer(Int64(sum.totals.files))),
      JSON.Member("bytes", .integer(Int64(clamping: sum.totals.bytes))),
    ]
  }

  /// The sums by kind.
  var json: JSON { .array(sums.map { .object(Self.members($0)) }) }
}

/// A rule that excludes only the directory of a finding from backups. If no app or group can be
/// named, the rule applies to all of them.
private struct CacheNameRule {
  private let finding: CacheNameFinding

  init(_ finding: CacheNameFinding) { self.finding = finding }

  /// The pattern for the directory and everything below it. `?` stands for each byte that a policy
  /// file cannot contain.
  var match: String {
    var text = ""
    for scalar in String(decoding: matchable, as: UTF8.self).unicodeScalars {
      if scalar.isASCII, "*?[]{}\\".unicodeScalars.contains(scalar) { text += "\\" }
      text.unicodeScalars.append(scalar)
    }
    return text.replacing("\u{0}", with: "?") + "/**"
  }

  /// The bytes of the path, with a NUL for each control character and each byte that is not UTF-8.
  private var matchable: [UInt8] {
    let bytes = Array(finding.path.bytes)
    let isText = String(validating: bytes, as: UTF8.self) != nil
    return bytes.map { $0 < 0x20 || $0 == 0x7f || (!isText && $0 >= 0x80) ? 0 : $0 }
  }

  /// The section and the name of the app or group to which the rule is limited, or nil if the
  /// container has none that a policy file can contain.
  var party: (key: String, name: String)? {
    let container = finding.container
    guard container.kind != .folder, let name = container.policyGroup ?? container.policyApp,
      name.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7f })
    else { return nil }
    return (container.policyGroup == nil ? "app" : "group", name)
  }

  /// The lines of a policy file with the rule alone.
  func file(for layout: Layout) -> [String] {
    let head = ["overlay: [\(layout.rawValue)]", "schema: 1"]
    let rule = [
      "rules:", "  - id: recreated-by-app", "    in: [\(finding.container.kind.rawValue)]",
      "    match: \(quoted(match))", "    backup: never", "    platform: unchanged",
    ]
    guard let (key, name) = party else {
      return head + ["# This path in every container of the kind: no app or group is named."] + rule
    }
    return head + ["\(key)s:", "  \(quoted(name)):"] + rule.map { "    " + $0 }
  }

  /// Returns a text as a scalar in double quotes.
  private func quoted(_ text: String) -> String {
    "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
  }
}
