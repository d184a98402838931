import SystemIO
import TestSupport
import Testing

@testable import SandboxCommands

/// Options that cannot be used together: those of the command line replace those of the
/// configuration, and a more specific part of the configuration the others.
struct OptionPrecedenceTests {
  /// A command line, a configuration, and the words that this one adds.
  struct Row: Sendable {
    let line: String
    let configuration: String
    let added: [String]

    init(_ line: String, _ configuration: String, adds added: [String] = []) {
      (self.line, self.configuration, self.added) = (line, configuration, added)
    }
  }

  private func added(_ row: Row) throws -> [String] {
    let words = row.line.split(separator: " ").map(String.init)
    let program = KnownCommand(SandboxctlCommand.self)
    let configuration = try Configuration(
      Array(row.configuration.utf8), at: "config.yaml", for: program,
      running: program.commands(of: words).last)
    return try ConfiguredCommandLine(words, completedBy: configuration, for: program)
      .added.map { $0.words.joined(separator: " ") }
  }

  private static let ofCommandLine = [
    Row("check --read-data", "check: {read-data-subset: 10%}"),
    Row("check --read-data-subset 1/2", "read-data: true"),
    Row("check --append-only", "check: {read-data: true, quiet: true}", adds: ["--quiet"]),
    Row("copy latest", "copy: {to: /b, tag: [x], host: h}", adds: ["--to=/b"]),
    Row("copy --to /b -- latest", "copy: {app: x}"),
    Row("copy --to-identity x latest", "to: /b\ncopy: {to-passphrase-file: /p}", adds: ["--to=/b"]),
    Row("key change --new-passphrase-command x", "new-passphrase-file: /p"),
    Row("cache clear --all", "profiles: {a: {repo: /b}}\nquiet: true", adds: ["--quiet"]),
    Row("cache clear --all --profile a", "profiles: {a: {repo: /b}}"),
    Row("cache clear 1234abcd", "cache: {clear: {all: true}}"),
    Row("migrate --from a --to b --app x", "migrate: {all: true}"),
    Row("restore latest --in-place", "to: /b\nrestore: {force: true}", adds: ["--force"]),
    Row(
      "restore latest --to x", "restore: {no-snapshot: true, force: true, overwrite: always}",
      adds: ["--overwrite=always"]),
    Row("restore latest --to x --class user-data", "delete: true"),
    Row("classify --stdin0", "classify: {findings: true, summary: true}", adds: ["--summary"]),
    Row("classify --findings", "summary: true"),
    Row("classify /x", "classify: {stdin0: true}"),
    Row("dump --tar latest:x", "dump: {merge-log: true}"),
    Row("stats latest", "stats: {growth: true}"),
    Row("audit --json", "audit: {format: sarif}"),
    Row("audit --format sarif", "json: true"),
    Row("scenario run --tap x", "json: true"),
    Row("interapp handlers --url x:", "interapp: {handlers: {type: public.data}}"),
    Row("purge --free 1G", "purge: {until-free: 10}"),
    Row("purge --dry-run", "purge: {watch: true, interval: 5m, yes: true}", adds: ["--yes"]),
    Row("schedule install --cron --hourly", "schedule: {install: {daily: true, systemd: true}}"),
    Row(
      "schedule install --cron --purge",
      "metrics: /m\nwhen: on-ac\nschedule: {install: {keep-daily: 7, forget-every: daily}}"),
    Row("key trust --snapshot all", "key: {trust: {name: x}}"),
    Row("init /b --plain", "recovery-key: /r\npassphrase-file: /p"),
  ]

  @Test(arguments: ofCommandLine) func commandLineReplacesOtherOptions(_ row: Row) throws {
    #expect(try added(row) == row.added, "\(row.line)")
  }

  @Test(arguments: [
    Row("check", "check: {read-data-subset: 10%}", adds: ["--read-data-subset=10%"]),
    // The value of an option is no argument.
    Row("copy --to /b", "copy: {tag: x}", adds: ["--tag=x"]),
    Row("copy --to=/b --no-check --tag x", "copy: {check: true}"),
    Row("stats --repo /b", "stats: {growth: true}", adds: ["--growth"]),
    // A flag that is unset is no choice.
    Row(
      "check --no-read-data", "check: {read-data: true, read-data-subset: 10%}",
      adds: ["--read-data-subset=10%"]),
    // What limits the deletion stays.
    Row("restore latest --to x --delete", "class: [a]", adds: ["--class=a"]),
    Row("purge --watch", "dry-run: true", adds: ["--dry-run"]),
    Row("purge --watch", "purge: {free: 1G, level: low}", adds: ["--level=low"]),
  ])
  func otherSettingsStay(_ row: Row) throws {
    #expect(try added(row) == row.added, "\(row.line)")
  }

  @Test(arguments: [
    Row(
      "check", "read-data: true\ncheck: {read-data-subset: 10%}", adds: ["--read-data-subset=10%"]),
    Row(
      "check --profile all",
      "check: {read-data-subset: 10%}\nprofiles: {all: {read-data: true}}", adds: ["--read-data"]),
    Row(
      "check", "check: {read-data: false}\nread-data-subset: 10%", adds: ["--read-data-subset=10%"]),
    Row("restore latest", "to: /b\nrestore: {in-place: true}", adds: ["--in-place"]),
    // A contradiction in one part is a mistake in it.
    Row(
      "check", "check: {read-data: true, read-data-subset: 10%}",
      adds: ["--read-data", "--read-data-subset=10%"]),
  ])
  func specificSettingsReplaceOthers(_ row: Row) throws {
    #expect(try added(row) == row.added, "\(row.line)")
  }

  /// The names are those of options, so that none is forgotten when one is renamed.
  @Test func namesAreThoseOfOptions() {
    let options = Set(
      KnownCommand(SandboxctlCommand.self).all.flatMap { $0.options.map(\.name) })
    for command in KnownCommand(SandboxctlCommand.self).all {
      for choice in command.precedence {
        let names = choice.chosen.union(choice.replaced)
        #expect(names.subtracting([OptionPrecedence.arguments]).isSubset(of: options))
      }
    }
    #expect(RetentionOptions.names.isSubset(of: options) && RetentionOptions.names.count == 14)
  }
}
