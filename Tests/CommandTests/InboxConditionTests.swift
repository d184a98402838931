import Foundation
import SystemIO
import TestSupport
import Testing

/// Inboxes of apps that are running, not installed or without space, inboxes that cannot be used,
/// and the confirmation of `inbox clean`.
struct InboxConditionTests {
  private static let notebook = "org.example.notebook"
  private static let clean = "interapp inbox clean --root device --older-than 0s"
  private static let picture: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

  /// A sample device with empty inboxes, a PDF and a picture.
  private func sample() throws -> CommandLine {
    let cli = try CommandLine(inMemory: true)
    _ = try cli.succeed("sample device")
    _ = try cli.succeed(Self.clean + " --yes")
    try cli.directory.write("%PDF-1.7\n", at: "report.pdf")
    try cli.directory.write(Self.picture, at: "photo.png")
    return cli
  }

  /// Returns the real path of an app's documents.
  private func documents(
    of app: String, _ cli: CommandLine, device: String = "device"
  ) throws -> ByteString {
    let containers = try cli.jsonLines("apps --root \(device) --json").flatMap {
      $0["containers"] as? [[String: Any]] ?? []
    }
    let data = containers.first { $0["path"] as? String == "apps/\(app)/data" }
    return ByteString(try #require(data?["real_path"] as? String)).appending("Documents")
  }

  private func inbox(
    of app: String, _ cli: CommandLine, device: String = "device"
  ) throws -> [ByteString] {
    try Directory.open(path: documents(of: app, cli, device: device).appending("Inbox")).names()
  }

  // MARK: - The app

  @Test func aRunningAppGetsItsFilesAndKeepsThem() throws {
    let cli = try sample()
    _ = try cli.succeed("interapp deliver photo.png --to darkroom --root device")
    let note = try documents(of: Self.notebook, cli).appending("Notes/Recipes.md")
    let holder = try OpenFileHolder(of: note.description)
    defer { holder.end() }
    let delivered = try cli.run("interapp deliver report.pdf --to notebook --root device")
    #expect(delivered.code == 0 && delivered.output.contains("Inbox/report.pdf"))
    #expect(
      delivered.errors.contains("\(Self.notebook) is running: process \(holder.process) "),
      "\(delivered.errors)")
    let claim = "interapp inbox claim report.pdf --app notebook --root device"
    for command in [claim, Self.clean + " --app notebook --yes"] {
      let refused = try cli.run(command)
      #expect(refused.code == 11, "\(command)")
      #expect(refused.errors.contains("the app is running: process \(holder.process) "))
    }
    // The running app keeps its file; the other inboxes are cleaned.
    let all = try cli.run(Self.clean + " --yes")
    #expect(all.code == 3 && all.output.contains("photo.png"), "\(all.output)")
    #expect(all.errors.contains("\(Self.notebook): cannot clean"), "\(all.errors)")
    #expect(try inbox(of: Self.notebook, cli) == ["report.pdf"])
    #expect(try inbox(of: "org.example.darkroom", cli).isEmpty)
    holder.end()
    _ = try cli.succeed(claim)
    #expect(try inbox(of: Self.notebook, cli).isEmpty)
  }

  @Test func anAppThatIsNotInstalledGetsNothing() throws {
    let cli = try sample()
    let before = try TreeRecord.all(in: cli.directory, "device")
    for options in ["", " --dry-run"] {
      let refused = try cli.run(
        "interapp deliver report.pdf --to com.example.podcast --root device" + options)
      #expect(refused.code == 1 && refused.output.isEmpty)
      #expect(refused.errors.contains("the app is not installed"), "\(refused.errors)")
      #expect(refused.errors.contains("sandboxctl install"))
    }
    #expect(try TreeRecord.all(in: cli.directory, "device") == before)
  }

  @Test(.enabled(if: SmallVolume.isPermitted)) func aFileWithoutRoomIsRefusedAndOthersAreDelivered()
    throws
  {
    let cli = try CommandLine()
    let volume = try SmallVolume(at: cli.directory.string + "/small", "size=8m")
    defer { volume.unmount() }
    _ = try cli.succeed("sample small/device")
    try cli.directory.write("%PDF-1.7\n", at: "report.pdf")
    try cli.directory.write([UInt8](repeating: 1, count: 9 << 20), at: "long.pdf")
    let before = try inbox(of: Self.notebook, cli, device: "small/device")
    let deliver = "interapp deliver --to notebook --root small/device"
    for options in ["", " --dry-run"] {
      let refused = try cli.run(deliver + " long.pdf" + options)
      #expect(refused.code == 1 && refused.output.isEmpty, "\(options)")
      #expect(refused.errors.contains("it needs 9437184 bytes, and the device has "))
      let mixed = try cli.run(deliver + " long.pdf report.pdf --dry-run")
      #expect(mixed.code == 3 && mixed.output.contains("report.pdf: would be delivered"))
      #expect(try inbox(of: Self.notebook, cli, device: "small/device") == before)
    }
    let mixed = try cli.run(deliver + " long.pdf report.pdf")
    #expect(mixed.code == 3 && mixed.output.contains("report.pdf: delivered"), "\(mixed.errors)")
    #expect(
      try inbox(of: Self.notebook, cli, device: "small/device").sorted()
        == (before + ["report.pdf"]).sorted())
    #expect(try cli.run("interapp inbox check --app notebook --root small/device").code == 0)
  }

  @Test(.enabled(if: SmallVolume.isPermitted)) func aDryRunCountsTheRoomOfTheFilesBefore() throws {
    let cli = try CommandLine()
    let volume = try SmallVolume(at: cli.directory.string + "/small", "size=8m")
    defer { volume.unmount() }
    _ = try cli.succeed("sample small/device")
    let available = try Directory.open(path: cli.directory.path("small")).space().available
    // There is space for two of them, but not for three.
    for name in ["a.pdf", "b.pdf", "c.pdf"] as [ByteString] {
      try cli.directory.write([UInt8](repeating: 1, count: Int(available) * 2 / 5), at: name)
    }
    let deliver = "interapp deliver a.pdf b.pdf c.pdf --to notebook --root small/device"
    for options in [" --dry-run", ""] {
      let result = try cli.run(deliver + options)
      #expect(result.code == 3, "\(result.errors)")
      #expect(result.output.contains("a.pdf: ") && result.output.contains("b.pdf: "))
      #expect(!result.output.contains("c.pdf: "))
      #expect(result.errors.contains("'c.pdf': it needs "), "\(result.errors)")
      #expect(result.errors.contains("available after the files before it") == !options.isEmpty)
    }
  }

  // MARK: - The inbox

  /// A list without files says that the inboxes are empty only if all of them could be read.
  @Test func anInboxThatCannotBeReadIsNotCalledEmpty() throws {
    let cli = try sample()
    let documents = try Directory.open(path: documents(of: Self.notebook, cli))
    try documents.removeTree("Inbox")
    #expect(try cli.succeed("interapp inbox list --root device") == "the inboxes are empty\n")
    try documents.create("Inbox").close()
    for (command, text) in [
      ("interapp inbox list --root device", "no files in the inboxes that can be read\n"),
      ("interapp inbox check --root device", "no files in the inboxes that can be read\n"),
      (Self.clean + " --dry-run", "nothing is old enough in the inboxes that can be read\n"),
    ] {
      let outcome = try cli.run(command)
      #expect(outcome.code == 3 && outcome.output == text, "\(command): \(outcome.output)")
    }
  }

  /// The trash of an app's data on another volume is in its container, and no file of the inbox.
  @Test func theTrashOnAnotherVolumeIsNoDeliveredFile() throws {
    guard try Mount.isPermitted() else { return }
    let cli = try sample()
    let data = try documents(of: Self.notebook, cli).parent
    _ = try Program.run("cp", ["-a", "\(data)", "\(cli.directory.path("data"))"])
    let mount = try Mount(inMemory: "size=16m", on: data)
    defer { withExtendedLifetime(mount) {} }
    _ = try Program.run("cp", ["-a", "\(cli.directory.path("data"))/.", "\(data)"])
    for _ in 0..<2 {
      _ = try cli.succeed("interapp deliver report.pdf --to notebook --root device")
      _ = try cli.succeed(Self.clean + " --yes")
      #expect(try inbox(of: Self.notebook, cli).isEmpty)
    }
    #expect(try Directory.open(path: data).statusIfPresent(".sandboxctl")?.kind == .directory)
  }

  /// Names of this program in an inbox, of the trash and of killed runs, are not delivered files. A
  /// staging directory may be needed by its restore.
  @Test func ownNamesAreNoDeliveredFiles() throws {
    let cli = try sample()
    let place = try documents(of: Self.notebook, cli).appending("Inbox")
    let probe: ByteString = ".sandboxctl-restore-probe-0123456789abcdef"
    try Directory.open(path: place).create(probe).close()
    let staging: ByteString = ".sandboxctl-restore-0123456789abcdef"
    for name in [".sandboxctl/trash", staging.appending("tree")] as [ByteString] {
      _ = try Directory.make(path: place.appending(name))
    }
    #expect(try cli.succeed("interapp inbox list --root device") == "the inboxes are empty\n")
    let claim = try cli.run("interapp inbox claim .sandboxctl --app notebook --root device")
    #expect(claim.code == 1 && claim.errors.contains("there is no such file"), "\(claim.errors)")
    _ = try cli.succeed("interapp deliver report.pdf --to notebook --root device")
    #expect(try Set(inbox(of: Self.notebook, cli)) == [".sandboxctl", staging, "report.pdf"])
    _ = try cli.succeed(Self.clean + " --yes")
    #expect(try Set(inbox(of: Self.notebook, cli)) == [".sandboxctl", staging])
  }

  /// A file that cannot be moved to Documents does not count as written to by the app.
  @Test func aClaimThatFailsLeavesTheFileAsDelivered() throws {
    guard try Mount.isPermitted() else { return }
    let cli = try sample()
    let place = try documents(of: Self.notebook, cli).appending("Inbox")
    let mount = try Mount(inMemory: "size=16m", on: place)
    defer { withExtendedLifetime(mount) {} }
    _ = try cli.succeed("interapp deliver report.pdf --to notebook --root device")
    let claim = try cli.run("interapp inbox claim report.pdf --app notebook --root device")
    #expect(claim.code == 1 && claim.errors.contains("it is on another mount"), "\(claim.errors)")
    let check = try cli.succeed("interapp inbox check --app notebook --root device")
    #expect(check.contains("unchanged"), "\(check)")
  }

  @Test func aDryRunOfAClaimChangesNothing() throws {
    let cli = try CommandLine(inMemory: true)
    _ = try cli.succeed("sample device")
    let before = try TreeRecord.all(in: cli.directory, "device")
    let plan = try cli.succeed(
      "interapp inbox claim Itinerary.pdf --app notebook --root device --dry-run")
    #expect(plan.contains("would be moved to apps/\(Self.notebook)/data/Documents/Itinerary.pdf"))
    // Not even the directory with the locks is created.
    #expect(try TreeRecord.all(in: cli.directory, "device") == before)
  }

  @Test(arguments: [true, false]) func anInboxThatCannotBeUsedStopsNoOther(_ isLink: Bool) throws {
    let cli = try sample()
    _ = try cli.succeed("interapp deliver photo.png --to darkroom --root device")
    try cli.directory.write("kept", at: "outside/report.pdf")
    let documents = try Directory.open(path: documents(of: Self.notebook, cli))
    try documents.removeTree("Inbox")
    if isLink {
      try documents.createLink("Inbox", to: cli.directory.path("outside"))
    } else {
      try documents.create("Inbox").close()
    }
    for command in [
      "interapp inbox list --root device", "interapp inbox check --root device",
      Self.clean + " --dry-run", Self.clean + " --yes",
    ] {
      let outcome = try cli.run(command)
      #expect(outcome.code == 3 && outcome.output.contains("Inbox/photo.png"), "\(command)")
      #expect(
        outcome.errors.contains("warning: \(Self.notebook): cannot open the inbox"),
        "\(outcome.errors)")
      #expect(outcome.errors.contains("and not a directory"))
      let single = try cli.run(command + " --app notebook")
      #expect(single.code == 1 && single.output.isEmpty, "\(command)")
    }
    #expect(try inbox(of: "org.example.darkroom", cli).isEmpty)
    #expect(try cli.directory.read("outside/report.pdf") == Array("kept".utf8))
  }

  @Test func cleanAsksOnATerminal() throws {
    let cli = try sample()
    _ = try cli.succeed("interapp deliver report.pdf --to notebook --root device")
    let typist = Shared.packageRoot.appendingPathComponent("Tests/CommandTests/Programs/type.py")
    func clean(answering answer: String) throws -> Program.Outcome {
      try cli.run(
        Self.clean.split(separator: " ").map(String.init),
        under: ["python3", "-B", typist.path],
        input: Array(JSONEncoder().encode([["Move these files to the trash?", answer]])))
    }
    for answer in ["n", ""] {
      let refused = try clean(answering: answer)
      #expect(refused.code == 1, "\(refused.output)")
      #expect(refused.output.contains("Inbox/report.pdf: would be moved to the trash"))
      #expect(try inbox(of: Self.notebook, cli) == ["report.pdf"])
    }
    let agreed = try clean(answering: "y")
    #expect(agreed.code == 0 && agreed.output.contains("report.pdf: moved to the trash"))
    #expect(try inbox(of: Self.notebook, cli).isEmpty)
  }
}
