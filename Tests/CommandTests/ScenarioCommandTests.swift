import Foundation
import SystemIO
import TestSupport
import Testing

/// `scenario run`, `scenario init` and `scenario list`.
struct ScenarioCommandTests {
  private static let head = """
    scenario: keeps notes
    schema: 1
    device: {sample: 0}
    versions: ["5.0", now]

    """

  private static let kept = """
    steps:
      - update: {app: notebook, version: "9.0"}
      - expect:
          - match: apps/org.example.notebook/data/Documents/Notes/**
            same-bytes: beginning

    """

  private static let lost = """
    steps:
      - remove: apps/org.example.notebook/data/Documents/Notes/Ideas.txt
      - expect:
          - match: apps/org.example.notebook/data/Documents/Notes/**
            same-bytes: beginning

    """

  private static func fixture(_ files: (String, String)...) throws -> CommandLine {
    let cli = try CommandLine(inMemory: true)
    for (name, text) in files { try cli.directory.write(text, at: ByteString(name)) }
    return cli
  }

  @Test func passingScenarioEndsWith0ForEachVersion() throws {
    let cli = try Self.fixture(("kept.yaml", Self.head + Self.kept))
    let outcome = try cli.run("scenario run kept.yaml")
    #expect(outcome.code == 0, "\(outcome.errors)")
    #expect(
      outcome.output
        == "passed  keeps notes (5.0)\npassed  keeps notes (now)\n2 cases: 2 passed\n")
    let tap = try cli.succeed("scenario run kept.yaml --tap --only-version now")
    #expect(tap == "TAP version 13\n1..1\nok 1 - keeps notes (now)\n")
  }

  @Test func failedExpectationEndsWith5AndNamesItsLine() throws {
    let cli = try Self.fixture(("lost.yaml", Self.head + Self.lost))
    let outcome = try cli.run("scenario run lost.yaml --junit results.xml")
    #expect(outcome.code == 5)
    #expect(outcome.output.contains("lost.yaml:9:9: expected the bytes of 'beginning'"))
    #expect(outcome.output.contains("Documents/Notes/Ideas.txt'"))
    let junit = String(decoding: try cli.directory.read("results.xml"), as: UTF8.self)
    #expect(junit.contains("<testsuites tests=\"2\" failures=\"2\" errors=\"0\""))
    #expect(junit.split(separator: "<failure message=").count == 3)
    let json = try cli.run("scenario run lost.yaml --json --only-version now")
    #expect(json.code == 5)
    let report = try CommandLine.object(json.output)
    #expect(report["failed"] as? Int == 1 && report["passed"] as? Int == 0)
  }

  /// The file with the results does not replace a device, pipe or link.
  @Test func resultsReplaceOnlyRegularFiles() throws {
    let cli = try Self.fixture(("kept.yaml", Self.head + Self.kept))
    try cli.directory.directory.createSpecial("pipe", kind: .fifo, permissions: 0o600)
    for (name, hint) in [("pipe", "is not a regular file"), (".", "is not")] {
      let refused = try cli.run("scenario run kept.yaml --junit \(name)")
      #expect(refused.code == 2 && refused.output.isEmpty, "\(name)")
      #expect(refused.errors.contains(hint), "\(refused.errors)")
    }
    #expect(try cli.directory.directory.status("pipe").kind == .fifo)
    try cli.directory.write("old", at: "results.xml")
    try cli.directory.directory.createLink("link.xml", to: "results.xml")
    _ = try cli.succeed("scenario run kept.yaml --junit link.xml")
    #expect(try cli.directory.directory.status("link.xml").kind == .symlink)
    #expect(try cli.directory.read("results.xml").starts(with: "<?xml".utf8))
  }

  @Test func wrongFilesEndWith2AndAllMistakes() throws {
    let steps = """
      steps:
        - wrote: {path: apps/x/data/a, text: b}
        - restore: {to: new-device, snapshot: none}
        - expect: [{match: "a/[", exists: true}]

      """
    let cli = try Self.fixture(
      ("wrong.yaml", Self.head + steps), ("kept.yaml", Self.head + Self.kept))
    let outcome = try cli.run("scenario run wrong.yaml kept.yaml")
    #expect(outcome.code == 2)
    for mistake in ["wrong.yaml:6:5: error: unknown key 'wrote'", "wrong.yaml:7:", "wrong.yaml:8:"]
    {
      #expect(outcome.output.contains(mistake), "\(outcome.output)")
    }
    #expect(!outcome.output.contains("passed"))
  }

  @Test(arguments: [
    "", "[", "a: &a [*a]", "scenario: x\n", "- - -", String(repeating: "[", count: 10_000),
    "scenario: x\nschema: 99\ndevice: {}\nsteps: {}\n",
  ]) func hostileDocumentIsRefused(_ text: String) throws {
    let cli = try Self.fixture(("hostile.yaml", text))
    let outcome = try cli.run("scenario run hostile.yaml")
    #expect(outcome.code == 2)
    #expect(outcome.output.contains("hostile.yaml:"))
  }

  @Test func scenariosOfTheProgramPass() throws {
    let cli = try Self.fixture()
    let names = try cli.jsonLines("scenario list --json").compactMap { $0["name"] as? String }
    #expect(names.count == 10)
    #expect(try cli.succeed("scenario list").hasPrefix(names[0] + "  "))
    let report = try cli.json("scenario run --json")
    #expect(report["failed"] as? Int == 0 && report["error"] as? Int == 0)
    #expect(report["passed"] as? Int ?? 0 >= 10)
    #expect(try cli.succeed("scenario run \(names[0]) --only-version now").contains("1 passed"))
  }

  /// A step that breaks a promise of the guides, before the last expectations of a built-in
  /// scenario: each is found.
  @Test func scenariosOfTheProgramFindBrokenPromises() throws {
    let cli = try Self.fixture()
    let notebook = "apps/org.example.notebook/data"
    let share = "apps/org.example.notebook/extensions/org.example.notebook.share/data"
    let group = "groups/group.org.example.library"
    let broken: [(scenario: String, step: String)] = [
      ("delivered-file-survives", "remove: \(notebook)/Documents/Inbox/letter.pdf"),
      ("interrupted-update-loses-nothing", "remove: \(group)/Shared/Tags.json"),
      ("offload-keeps-data", "remove: \(notebook)/Invented/state"),
      ("offload-keeps-data", "remove: \(share)/Library/Application Support/Pending"),
      ("purge-takes-caches-only", "write: {path: \(notebook)/tmp/upload.part, text: x}"),
      ("purge-takes-caches-only", "write: {path: \(share)/tmp/draft.part, text: x}"),
      ("purge-takes-caches-only", "remove: \(notebook)/Library/Saved Application State"),
      ("restore-keeps-documents", "remove: \(notebook)/Library/Cookies"),
      ("restore-keeps-documents", "remove: \(share)/Documents/clipping.txt"),
      ("restore-keeps-documents", "remove: \(group)/Shared/highlights.txt"),
      (
        "restore-lacks-caches-and-temporary-files",
        "write: {path: \(notebook)/Invented/state, text: x}"
      ),
      (
        "restore-lacks-caches-and-temporary-files",
        "write: {path: \(notebook)/Library/SyncedPreferences/org.example.notebook.plist, text: x}"
      ),
      ("update-keeps-documents-and-library", "remove: \(notebook)/Library/Caches"),
      ("update-keeps-documents-and-library", "remove: \(group)/Shared/Tags.json"),
      ("update-may-drop-temporary-files", "write: {path: \(notebook)/Invented/state, text: x}"),
    ]
    let directory = Shared.packageRoot.appendingPathComponent("policies/scenarios")
    for (number, (name, step)) in broken.enumerated() {
      let text = try String(
        contentsOf: directory.appendingPathComponent(name + ".yaml"), encoding: .utf8)
      let last = try #require(text.range(of: "  - expect:\n", options: .backwards))
      try cli.directory.write(
        text.replacingCharacters(in: last, with: "  - \(step)\n  - expect:\n"),
        at: ByteString("\(number).yaml"))
    }
    let files = broken.indices.map { "\($0).yaml" }.joined(separator: " ")
    let outcome = try cli.run("scenario run \(files) --only-version now --json")
    #expect(outcome.code == 5, "\(outcome.errors)")
    let report = try CommandLine.object(outcome.output)
    #expect(report["failed"] as? Int == broken.count, "\(outcome.output)")
  }

  @Test func draftOfADevicePassesAndTheDeviceStays() throws {
    let cli = try Self.fixture()
    _ = try cli.succeed("sample device")
    let before = try TreeRecord.all(in: cli.directory, "device")
    _ = try cli.succeed("scenario init --root device --to device.yaml")
    let text = String(decoding: try cli.directory.read("device.yaml"), as: UTF8.self)
    #expect(text.contains("apps/org.example.notebook/data/Documents/**"))
    #expect(try cli.succeed("scenario run device.yaml").contains("1 case: 1 passed"))
    #expect(try TreeRecord.all(in: cli.directory, "device") == before)
    let again = try cli.run("scenario init --root device --to device.yaml")
    let message = "cannot write 'device.yaml': a file of that name exists"
    #expect(again.code == 1 && again.errors.contains(message), "\(again.errors)")
    #expect(again.errors.contains("give another name"))
    #expect(try cli.directory.read("device.yaml") == Array(text.utf8))
  }

  @Test func draftNamesUnreadableDirectories() throws {
    let cli = try Self.fixture()
    _ = try cli.succeed("sample device")
    let data = try #require(
      try cli.containers(of: "device").first { $0.path == "apps/org.example.notebook/data" }?
        .realPath)
    let documents = data.appending("Documents").description
    _ = try Program.run("chown", ["-R", "nobody", cli.directory.string])
    _ = try Program.run("chmod", ["000", documents])
    defer { _ = try? Program.run("chmod", ["700", documents]) }
    for line in ["scenario init --root device", "scenario init --root device --to device.yaml"] {
      let outcome = try cli.runAsNobody(line)
      let remark = "not in the scenario: apps/org.example.notebook/data/Documents: "
      #expect(outcome.code == 3 && outcome.errors.contains(remark), "\(outcome.errors)")
      #expect(outcome.output.contains("Notebook") || line.hasSuffix("device.yaml"))
    }
    #expect(try cli.isThere("device.yaml"))
  }

  /// Neither the user's directories nor the temporary directory contain anything from a run.
  @Test func runLeavesNothing() throws {
    let cli = try Self.fixture(("lost.yaml", Self.head + Self.lost))
    _ = try Directory.make(path: cli.directory.path("tmp"))
    let environment = ["TMPDIR": cli.directory.string + "/tmp"]
    let outcome = try cli.run(["scenario", "run", "lost.yaml"], environment: environment)
    #expect(outcome.code == 5)
    #expect(try Directory.open(path: cli.directory.path("tmp")).names().isEmpty)
    #expect(try Directory.open(path: cli.directory.path("home")).names().isEmpty)
    _ = try cli.run(
      ["scenario", "run", "lost.yaml", "--keep-copy", "kept"], environment: environment)
    #expect(
      try Directory.open(path: cli.directory.path("kept")).names()
        == ["keeps-notes-5.0", "keeps-notes-now"])
  }

  /// The file for the results is checked before the run, because the results would otherwise be
  /// lost.
  @Test func aMissingDirectoryOfResultsIsNamedBeforeTheRun() throws {
    let cli = try Self.fixture(("lost.yaml", Self.head + Self.lost))
    let outcome = try cli.run(
      "scenario run lost.yaml --junit nowhere/results.xml --keep-copy kept")
    #expect(outcome.code == 1 && outcome.errors.contains("nowhere"), "\(outcome)")
    #expect(try cli.directory.directory.statusIfPresent("kept") == nil)
  }

  @Test func interruptedRunLeavesNothing() throws {
    let cli = try Self.fixture(("kept.yaml", Self.head + Self.kept))
    _ = try Directory.make(path: cli.directory.path("tmp"))
    let outcome = try cli.run(
      ["scenario", "run"] + Array(repeating: "kept.yaml", count: 200),
      // In the foreground: otherwise the process group gets the signal a second time.
      under: ["timeout", "--foreground", "--signal=INT", "--preserve-status", "2"],
      environment: ["TMPDIR": cli.directory.string + "/tmp"])
    #expect(outcome.code == 130)
    #expect(try Directory.open(path: cli.directory.path("tmp")).names().isEmpty)
  }
}
