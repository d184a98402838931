import AppPackages
import BuiltinPolicies
import Codecs
import Foundation
import PolicyEngine
import SystemIO
import TestSupport
import Testing

@testable import Migration

struct TableTests {
  private static let directory = Shared.packageRoot.appendingPathComponent("policies/migrations")

  @Test func builtinTablesHaveNoMistakes() {
    #expect(builtin.lint().map(\.description) == [])
    #expect(builtin.tables.count == BuiltinPolicies.migrations.count)
  }

  @Test func everyFileIsPartOfTheProgram() throws {
    let files = try FileManager.default.contentsOfDirectory(atPath: Self.directory.path).sorted()
    #expect(BuiltinPolicies.migrations.map(\.name).sorted() == files.map { "migrations/" + $0 })
    for (name, bytes) in BuiltinPolicies.migrations {
      let file = Self.directory.deletingLastPathComponent().appendingPathComponent(name)
      #expect(try Array(Data(contentsOf: file)) == bytes, "\(name)")
    }
  }

  @Test func aTableIsNamedAsItsFile() {
    for table in builtin.tables {
      #expect(table.location.file == "builtin:migrations/\(table.name).yaml")
    }
  }

  @Test func tablesAreFoundByEachFormOfTheApp() {
    #expect(builtin.table(for: "org.mozilla.firefox", as: .flatpak)?.name == "firefox")
    #expect(builtin.table(for: "firefox", as: .snap)?.name == "firefox")
    #expect(builtin.table(for: "firefox-esr", as: .deb)?.name == "firefox")
    #expect(builtin.table(for: "firefox-esr", as: .snap) == nil)
    #expect(builtin.general?.name == "xdg")
  }

  @Test func requiredAppsHaveTables() {
    let flatpaks: [ByteString] = [
      "org.mozilla.firefox", "org.mozilla.Thunderbird", "org.chromium.Chromium",
      "com.google.Chrome", "org.libreoffice.LibreOffice", "org.gimp.GIMP",
      "org.inkscape.Inkscape", "org.videolan.VLC", "com.visualstudio.code",
      "com.vscodium.codium", "org.telegram.desktop", "org.signal.Signal",
      "com.discordapp.Discord", "com.valvesoftware.Steam", "com.obsproject.Studio",
      "org.kde.krita", "org.gnome.Evolution", "org.keepassxc.KeePassXC", "md.obsidian.Obsidian",
    ]
    for app in flatpaks { #expect(builtin.table(for: app, as: .flatpak) != nil, "\(app)") }
  }

  @Test func theSchemaFileMatchesTheGrammar() throws {
    let file = Shared.packageRoot.appendingPathComponent("policies/migration.schema.json")
    let text = try String(contentsOf: file, encoding: .utf8)
    #expect(
      text == MigrationGrammar.schema + "\n",
      "print it again with 'sandboxctl policy schema --migration'")
  }

  @Test func aValidTableHasNoMistakes() throws {
    let read = table(text(places: [goodPlace], examples: [goodExample]))
    #expect(read.issues.map(\.description) == [])
    #expect(try #require(read.table).places.map(\.id) == ["a"])
  }

  /// A mistake: the table's places, examples and head, and the expected type, line and problem.
  struct Mistake: Sendable, CustomTestStringConvertible {
    var places = [goodPlace]
    var examples = [goodExample]
    var head = "apps: {flatpak: org.example.App, deb: app}\n"
    let kind: PolicyIssue.Kind
    let line: Int
    let problem: String
    var testDescription: String { problem }
  }

  @Test(arguments: [
    Mistake(
      places: ["{id: a, host: .config/a, flatpak: config/a}"], kind: .key, line: 5,
      problem: "a place has no 'source'"),
    Mistake(
      places: ["{id: a, host: .config/a, flatpack: config/a, source: x}"], kind: .key, line: 5,
      problem: "unknown key 'flatpack'"),
    Mistake(
      places: ["{id: a, host: ../a, flatpak: config/a, source: x}"], kind: .value, line: 5,
      problem: "it is '..'"),
    Mistake(
      places: ["{id: a, host: /etc/a, flatpak: config/a, source: x}"], kind: .value, line: 5,
      problem: "it is empty"),
    Mistake(
      places: ["{id: a, host: .config//a, flatpak: config/a, source: x}"], kind: .value, line: 5,
      problem: "it is empty"),
    Mistake(
      places: ["{id: a, host: .config/a, snap: .config/a, source: x}"], kind: .value, line: 5,
      problem: "is not in a directory of the snap's data"),
    Mistake(
      places: ["{id: a, host: .config/a, source: x}"], kind: .key, line: 5,
      problem: "has the path of one form"),
    Mistake(
      places: [goodPlace, goodPlace], kind: .duplicate, line: 6,
      problem: "the id 'a' is already used in line 5"),
    Mistake(
      places: [goodPlace, "{id: b, host: .config/b, flatpak: config/a, source: x}"],
      examples: [goodExample, "{from: deb, to: flatpak, path: .config/b, becomes: config/a}"],
      kind: .duplicate, line: 6, problem: "have the same path in flatpak"),
    Mistake(
      places: [goodPlace, "{id: b, host: .b, flatpak: data/b, source: x}"], kind: .example, line: 6,
      problem: "the place 'b' has no example"),
    Mistake(
      examples: ["{from: deb, to: flatpak, path: .config/a/b, becomes: config/a/c}"],
      kind: .example, line: 7, problem: "results in a move to '.var/app/org.example.App/config/a/b'"
    ),
    Mistake(
      examples: [goodExample, "{from: deb, to: snap, path: .config/a, outcome: skipped}"],
      kind: .example, line: 8, problem: "results in no place for it"),
    Mistake(
      examples: ["{from: deb, to: flatpak, path: .config/a/b}"], kind: .key, line: 7,
      problem: "an example has none of 'becomes', 'outcome'"),
    Mistake(
      places: [
        "{id: a, host: .config/a, flatpak: config/a, source: x, skip: [{match: '**a', why: y}]}"
      ], kind: .pattern, line: 5, problem: "`**` next to other characters"),
    Mistake(
      places: ["{id: a, host: .config/a, flatpak: config/a, source: x, rewrite: mozila}"],
      kind: .value, line: 5, problem: "'rewrite' is 'mozila'"),
    Mistake(head: "general: false\n", kind: .value, line: 3, problem: "'general' is false"),
    Mistake(
      head: "apps: {deb: app}\ngeneral: true\n", kind: .key, line: 4,
      problem: "a migration table has both 'apps' and 'general'"),
  ])
  func aMistakeIsReportedAtItsPosition(_ mistake: Mistake) throws {
    let read = table(
      text(places: mistake.places, examples: mistake.examples, head: mistake.head))
    let issue = try #require(read.issues.first, "no issue")
    #expect(issue.kind == mistake.kind, "\(issue)")
    #expect(issue.location.line == mistake.line, "\(issue)")
    #expect(issue.problem.contains(mistake.problem), "\(issue)")
  }

  @Test func aTextThatIsNotATableIsRefused() {
    #expect(table("").table == nil)
    #expect(table("[1]").table == nil)
    #expect(table("migration: {a: b}\n").table == nil)
    #expect(table("migration: [\n").issues.first?.kind == .unreadable)
    let nested = String(repeating: "{a: ", count: 40) + "b" + String(repeating: "}", count: 40)
    #expect(table("migration: \(nested)\n").issues.first?.kind == .unreadable)
    let large = "migration: x\n#" + String(repeating: "a", count: MigrationTable.maximumSize)
    #expect(table(large).issues.first?.problem == "the file is too large")
  }

  @Test func tablesAndPoliciesAreDistinguishedByTheirFirstKey() {
    func isTable(_ text: String) -> Bool {
      MigrationTable.isTable(PolicySource(name: "x", text: text, origin: .user))
    }
    #expect(isTable("# a comment\nmigration: x\n"))
    #expect(!isTable("policy: x\nrules:\n  - {id: migration:}\n"))
  }

  @Test func tablesOfOneDirectoryShareNeitherNamesNorApps() {
    let one = text(places: [goodPlace], examples: [goodExample])
    func library(_ names: String...) -> MigrationLibrary {
      MigrationLibrary(names.map { PolicySource(name: $0, text: one, origin: .user) })
    }
    let problems = library("d/a.yaml", "d/b.yaml").lint().map(\.problem)
    #expect(problems.count == 3)
    #expect(problems.contains("the table 't' is already in d/a.yaml"))
    #expect(problems.contains("the flatpak app 'org.example.App' is already in the table 't'"))
    // A user's table replaces a built-in one.
    let replaced = library("builtin:migrations/a.yaml", "/home/u/b.yaml")
    #expect(replaced.lint().isEmpty)
    #expect(replaced.table(for: "app", as: .deb)?.location.file == "/home/u/b.yaml")
  }

  @Test func aContainerMigrationIsATable() throws {
    let migration = ContainerMigration(
      moves: [
        .init(
          source: "Library/Application Support/App", destination: "Library/Application Support/App"),
        .init(source: "Library/Old", destination: "Library/New"),
      ], links: ["Library/Linked"])
    let table = MigrationTable(migration, of: "com.example.app", file: "x.plist")
    let route = MigrationRoute(
      from: MigrationEnd(.host, app: "com.example.app", home: "/Users/u"),
      to: MigrationEnd(.macOS, app: "com.example.app", home: "/Users/u"), table: table,
      general: nil, names: MigrationNames(of: "com.example.app"))
    #expect(
      route.destination(of: "Library/Old/a")
        == .path("Library/Containers/com.example.app/Data/Library/New/a"))
    #expect(route.destination(of: "Library/Linked/a") == .noPlace)
    #expect(route.sources == ["Library/Application Support/App", "Library/Old"])
  }
}
