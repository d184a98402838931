import BuiltinPolicies
import Foundation
import PolicyEngine
import SandboxModel
import TestSupport
import Testing

/// The tables of sandboxctl-lifecycle(7) match the policies. `SANDBOXCTL_RECORD=1` rewrites them,
/// and the test fails anyway.
struct LifecyclePageTests {
  private static let page = Shared.packageRoot.appendingPathComponent("Man/sandboxctl-lifecycle.7")

  private static let library = PolicyLibrary(
    BuiltinPolicies.files.map { PolicySource(name: $0.name, bytes: $0.bytes, origin: .builtin) })

  private static let platforms: [(name: String, layout: Layout)] = [
    ("ios", .coreSimulator), ("macos", .macOS), ("flatpak", .flatpak), ("snap", .snap),
    ("android", .android), ("systemd", .systemd), ("xdg", .xdg),
  ]

  @Test func theTablesMatchThePolicies() throws {
    let text = try String(contentsOf: Self.page, encoding: .utf8)
    var expected = text
    for (name, layout) in Self.platforms {
      let (begin, end) = (".\\\" begin \(name)\n", ".\\\" end \(name)\n")
      let first = try #require(expected.range(of: begin), "no tables of \(name)")
      let last = try #require(expected.range(of: end), "no tables of \(name)")
      let policy = try Self.library.compile(PolicyRequest(layout: layout))
      let tables = Self.containers(policy, layout) + Self.classes(policy)
      expected.replaceSubrange(first.upperBound..<last.lowerBound, with: tables)
    }
    if ProcessInfo.processInfo.environment["SANDBOXCTL_RECORD"] == "1", expected != text {
      try expected.write(to: Self.page, atomically: true, encoding: .utf8)
    }
    #expect(
      text == expected, "SANDBOXCTL_RECORD=1 rewrites the tables of sandboxctl-lifecycle.7")
  }

  private static func table(_ head: [String], _ rows: [[String]]) -> String {
    let all = [head] + rows
    let widths = head.indices.map { column in all.map { $0[column] }.max { $0.count < $1.count } }
    let list = widths.map { "\"\($0 ?? "")\"" }.joined(separator: " ")
    let lines = rows.map { ".It " + $0.map(quoted).joined(separator: " Ta ") }
    let first = ".It " + head.map { "Em \(quoted($0))" }.joined(separator: " Ta ")
    return ([".Bl -column \(list)", first] + lines + [".El"]).joined(separator: "\n") + "\n"
  }

  private static func quoted(_ text: String) -> String {
    text.contains(" ") ? "\"\(text)\"" : text
  }

  private static func containers(_ policy: CompiledPolicy, _ layout: Layout) -> String {
    let rows = layout.containerKinds.map { kind in
      let terms = policy.containers[kind] ?? ContainerTerms()
      return [
        kind.rawValue, word(terms.update ?? .keep),
        terms.offload ?? .keep == .keep ? "kept" : "removed",
        terms.offload ?? .keep == .keep ? "kept" : "reinstalled", word(terms.uninstall ?? .keep),
        kind == .bundle ? "-" : word(terms.restoreMissing),
      ]
    }
    return ".Ss Containers\n"
      + table(["container", "update", "offload", "reinstall", "uninstall", "no app"], rows)
  }

  private static func word(_ update: ContainerTerms.Update) -> String {
    switch update {
    case .newContainer: "moved"
    case .replace: "replaced"
    case .keep: "kept"
    case .copyRevision: "copied"
    }
  }

  private static func word(_ uninstall: ContainerTerms.Uninstall) -> String {
    switch uninstall {
    case .keep: "kept"
    case .remove: "removed"
    case .removeWithLastKnownMember: "last member"
    }
  }

  private static func word(_ missing: ContainerTerms.RestoreMissing?) -> String {
    switch missing {
    case .safeHarbor: "safe harbor"
    case .create: "created"
    case nil: "-"
    }
  }

  private static func classes(_ policy: CompiledPolicy) -> String {
    let rows = DataClass.allCases.compactMap { dataClass -> [String]? in
      guard let verdict = policy.classes[dataClass] else { return nil }
      return [
        dataClass.rawValue, verdict.backup.mode().rawValue, verdict.update.rawValue,
        purge(verdict.purge), verdict.restore.rawValue,
      ]
    }
    return ".Ss Classes\n" + table(["class", "backup", "update", "purge", "restore"], rows)
  }

  private static func purge(_ disposition: PurgeDisposition) -> String {
    guard let terms = disposition.terms else { return "never" }
    return terms.when == .anytime ? "anytime" : "under pressure"
  }
}
