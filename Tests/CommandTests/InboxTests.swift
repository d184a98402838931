import Foundation
import SystemIO
import TestSupport
import Testing

/// `interapp deliver` and `interapp inbox` on the sample device.
struct InboxTests {
  private func sample(inMemory: Bool = false) throws -> CommandLine {
    let cli = try CommandLine(inMemory: inMemory)
    _ = try cli.succeed("sample device")
    try cli.directory.write("%PDF-1.7\n", at: "report.pdf")
    return cli
  }

  private static let deliver = "interapp deliver --to notebook --root device"
  private static let inbox = "interapp inbox"
  private static let ends = "--app notebook --root device"

  /// Returns the path of the app's inbox, relative to the test's directory.
  private func place(_ cli: CommandLine, _ inner: String = "") throws -> ByteString {
    let containers = try #require(
      try cli.jsonLines("apps --root device --json").first?["containers"] as? [[String: Any]])
    let data = containers.first { $0["path"] as? String == "apps/org.example.notebook/data" }
    let path = ByteString(try #require(data?["real_path"] as? String))
    let real = try Host.realPath(cli.directory.path)
    return path.relative(to: real).appending("Documents/Inbox").appending(ByteString(inner))
  }

  private func states(_ cli: CommandLine) throws -> [String: String] {
    let lines = try cli.run("\(Self.inbox) check \(Self.ends) --json").output.split(separator: "\n")
    var states: [String: String] = [:]
    for line in lines {
      let object = try #require(
        try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
      let path = try #require(object["path"] as? String)
      states[String(path.split(separator: "/").last ?? "")] = object["state"] as? String
    }
    return states
  }

  private func mode(_ cli: CommandLine, _ path: ByteString) throws -> UInt16 {
    try Directory.open(path: cli.directory.path(path).parent).status(
      path.lastComponent ?? path
    ).permissions
  }

  @Test func aFileIsCopiedReadOnlyUnderAFreeName() throws {
    let cli = try sample()
    let dry = try cli.succeed("\(Self.deliver) report.pdf --dry-run")
    #expect(dry.contains("would be delivered to apps/org.example.notebook/data/Documents/Inbox/"))
    #expect(try states(cli)["report.pdf"] == nil)
    let both = try cli.succeed("\(Self.deliver) report.pdf report.pdf --dry-run")
    #expect(both.contains("Inbox/report.pdf ") && both.contains("Inbox/report-1.pdf "), "\(both)")
    for name in ["report.pdf", "report-1.pdf", "report-2.pdf"] {
      let told = try cli.json("\(Self.deliver) report.pdf --json")
      #expect((told["path"] as? String)?.hasSuffix("Documents/Inbox/\(name)") == true)
      #expect(told["type"] as? String == "com.adobe.pdf")
      #expect(try cli.directory.read(place(cli, name)) == Array("%PDF-1.7\n".utf8))
      #expect(try mode(cli, place(cli, name)) == 0o444)
    }
    // Apple's volumes do not distinguish case.
    try cli.directory.write("%PDF-1.7\n", at: "REPORT.PDF")
    #expect(try cli.succeed("\(Self.deliver) REPORT.PDF").contains("Inbox/REPORT-3.PDF"))
    #expect(try cli.run("\(Self.inbox) check \(Self.ends)").code == 0)
  }

  @Test func onlyDeclaredTypesAreAccepted() throws {
    let cli = try sample()
    try cli.directory.write([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A], at: "photo.png")
    let refused = try cli.run("\(Self.deliver) photo.png")
    #expect(refused.code == 1 && refused.errors.contains("no type to which 'public.png' conforms"))
    let mixed = try cli.run("\(Self.deliver) photo.png report.pdf")
    #expect(mixed.code == 3 && mixed.output.contains("Inbox/report.pdf"))
    #expect(mixed.errors.contains("photo.png"))
    let unknown = try cli.run("interapp deliver report.pdf --to nobody --root device")
    #expect(unknown.code == 1 && unknown.errors.contains("no such app"), "\(unknown.errors)")
    let other = try cli.run(
      "interapp deliver report.pdf --to org.example.notebook.share --root device")
    #expect(other.code == 2 && other.errors.contains("is an app extension"), "\(other.errors)")
  }

  @Test func onlyRegularFilesAreDelivered() throws {
    let cli = try sample()
    try cli.directory.directory.createSpecial("pipe.pdf", kind: .fifo, permissions: 0o600)
    try cli.directory.directory.createDirectory("folder.pdf")
    let pipe = try cli.run("\(Self.deliver) pipe.pdf")
    #expect(pipe.code == 1 && pipe.errors.contains("neither a regular file nor"), "\(pipe.errors)")
    let folder = try cli.run("\(Self.deliver) folder.pdf")
    #expect(folder.code == 1, "\(folder.errors)")
    #expect(folder.errors.contains("type 'public.folder', which is not a document package"))
    #expect(try cli.run("\(Self.deliver) nowhere.pdf").code == 1)
    try cli.directory.directory.createLink("link.pdf", to: "report.pdf")
    #expect(try cli.succeed("\(Self.deliver) link.pdf").contains("Inbox/link.pdf"))
    #expect(try cli.directory.read(place(cli, "link.pdf")) == Array("%PDF-1.7\n".utf8))
  }

  @Test func namesAreBytesAndStayShort() throws {
    let cli = try sample()
    let odd = ByteString([0xFF, 0x61] + Array(".pdf".utf8))
    let long = ByteString(String(repeating: "é", count: 125) + "x.pdf")
    for name in [odd, long] {
      try cli.directory.write("%PDF-1.7\n", at: name)
      // Arguments of a test are strings, so the shell finds the name.
      let pattern = name == odd ? "?a.pdf" : "*x.pdf"
      let script = "export LC_ALL=C; for i in 1 2; do \"$0\" \(Self.deliver) \(pattern); done"
      let outcome = try cli.run([], under: ["bash", "-c", script])
      #expect(outcome.code == 0, "\(outcome.errors)")
    }
    let names = try Directory.open(path: cli.directory.path(place(cli))).names()
    #expect(names.contains(odd))
    #expect(names.contains(ByteString([0xFF, 0x61] + Array("-1.pdf".utf8))), "\(names)")
    let second = ByteString(String(repeating: "é", count: 124) + "-1.pdf")
    #expect(names.contains(long) && names.contains(second), "\(names)")
  }

  @Test func anInboxThatIsNoDirectoryIsRefused() throws {
    let cli = try sample()
    _ = try cli.succeed("\(Self.deliver) report.pdf")
    let documents = try Directory.open(path: cli.directory.path(place(cli)).parent)
    try documents.removeTree("Inbox")
    try cli.directory.write("kept", at: "outside/report.pdf")
    try documents.createLink("Inbox", to: cli.directory.path("outside"))
    for command in [
      "\(Self.deliver) report.pdf", "\(Self.inbox) list \(Self.ends)",
      "\(Self.inbox) claim report.pdf \(Self.ends)",
      "\(Self.inbox) clean \(Self.ends) --older-than 0s --yes",
    ] {
      let refused = try cli.run(command)
      #expect(refused.code == 1, "\(command)")
      #expect(refused.errors.contains("not a directory"), "\(refused.errors)")
    }
    try documents.remove("Inbox")
    try documents.create("Inbox").close()
    let refused = try cli.run("\(Self.deliver) report.pdf")
    #expect(refused.code == 1 && refused.errors.contains("not a directory"), "\(refused.errors)")
    #expect(try cli.directory.read("outside/report.pdf") == Array("kept".utf8))
  }

  @Test func checkFindsWhatWasWrittenTo() throws {
    let cli = try sample()
    for name in ["same", "written", "gone", "loose"] {
      try cli.directory.write("%PDF-1.7 \(name)\n", at: ByteString("\(name).pdf"))
      _ = try cli.succeed("\(Self.deliver) \(name).pdf")
    }
    let inbox = try Directory.open(path: cli.directory.path(place(cli)))
    try inbox.setPermissions(0o644, of: "written.pdf")
    try inbox.fileForWriting("written.pdf").write(Array("%PDF-1.7 WRITTEN\n".utf8))
    try inbox.setPermissions(0o444, of: "written.pdf")
    try inbox.setPermissions(0o644, of: "loose.pdf")
    try inbox.remove("gone.pdf")
    try inbox.create("own.txt").close()
    let expected = [
      "same.pdf": "unchanged", "written.pdf": "changed", "gone.pdf": "removed",
      "loose.pdf": "writable", "own.txt": "unknown",
    ]
    let found = try states(cli)
    for (name, state) in expected { #expect(found[name] == state, "\(name)") }
    #expect(try cli.run("\(Self.inbox) check \(Self.ends)").code == 5)
    #expect(try !cli.succeed("\(Self.inbox) list --root device").contains("gone.pdf"))
  }

  @Test func claimMovesAFileToDocuments() throws {
    let cli = try sample()
    _ = try cli.succeed("\(Self.deliver) report.pdf")
    let documents = try place(cli).parent
    try cli.directory.write("old", at: documents.appending("report.pdf"))
    let missing = try cli.run("\(Self.inbox) claim report.pdf nowhere.pdf \(Self.ends)")
    #expect(missing.code == 1 && missing.errors.contains("no such file"))
    #expect(try cli.directory.read(place(cli, "report.pdf")) == Array("%PDF-1.7\n".utf8))
    let told = try cli.json("\(Self.inbox) claim report.pdf \(Self.ends) --json")
    #expect((told["target"] as? String)?.hasSuffix("data/Documents/report-1.pdf") == true)
    let claimed = documents.appending("report-1.pdf")
    #expect(try cli.directory.read(claimed) == Array("%PDF-1.7\n".utf8))
    #expect(try mode(cli, claimed) == 0o644)
    #expect(try cli.directory.read(documents.appending("report.pdf")) == Array("old".utf8))
    #expect(try states(cli)["report.pdf"] == nil)
  }

  @Test func aNameGivenTwiceIsClaimedOnce() throws {
    let cli = try sample()
    _ = try cli.succeed("\(Self.deliver) report.pdf")
    let told = try cli.json("\(Self.inbox) claim report.pdf report.pdf \(Self.ends) --json")
    #expect((told["target"] as? String)?.hasSuffix("data/Documents/report.pdf") == true)
    #expect(try states(cli)["report.pdf"] == nil)
  }

  @Test func cleanMovesOldFilesToTheTrashAndKeepsChangedOnes() throws {
    let cli = try sample()
    _ = try cli.succeed("\(Self.inbox) clean --root device --older-than 0s --yes")
    try cli.directory.write("%PDF-1.7 changed\n", at: "changed.pdf")
    _ = try cli.succeed("\(Self.deliver) report.pdf changed.pdf")
    let inbox = try Directory.open(path: cli.directory.path(place(cli)))
    try inbox.setPermissions(0o644, of: "changed.pdf")
    try inbox.fileForWriting("changed.pdf").write(Array("the user's work".utf8))
    let clean = "\(Self.inbox) clean \(Self.ends)"
    #expect(try cli.succeed(clean).contains("nothing is old enough"))
    #expect(try cli.succeed("\(clean) --dry-run") == "nothing is old enough\n")
    let unasked = try cli.run("\(clean) --older-than 0s")
    #expect(unasked.code == 2 && unasked.errors.contains("--yes"))
    #expect(try cli.succeed("\(clean) --older-than 0s --dry-run").contains("report.pdf"))
    #expect(try states(cli)["report.pdf"] == "unchanged")
    let told = try cli.json("\(clean) --older-than 0s --yes --json")
    let operation = try #require(told["trash"] as? String)
    #expect(try inbox.names() == ["changed.pdf"])
    let trash = try cli.succeed("trash list --root device")
    #expect(trash.contains(operation) && trash.contains("inbox clean"), "\(trash)")
    let kept = ByteString(
      "device/.sandboxctl/trash/\(operation)/apps/org.example.notebook/data/Documents/Inbox/"
        + "report.pdf")
    #expect(try cli.directory.read(kept) == Array("%PDF-1.7\n".utf8))
  }

  /// The notes about files that are gone do not grow without limit.
  @Test func oldNotesAboutFilesThatAreGoneAreDropped() throws {
    let cli = try sample()
    for name in ["old.pdf", "new.pdf"] {
      try cli.directory.write("%PDF-1.7\n", at: ByteString(name))
      _ = try cli.succeed("\(Self.deliver) \(name)")
    }
    let inbox = try Directory.open(path: cli.directory.path(place(cli)))
    for name: ByteString in ["old.pdf", "new.pdf"] { try inbox.remove(name) }
    let notes = try Directory.open(path: cli.directory.path("device/.sandboxctl/inbox"))
    let file = try #require(try notes.names().first)
    let text = String(decoding: try notes.file(file).readAll(limit: 1 << 20) ?? [], as: UTF8.self)
    let made = #/("old.pdf".*?"time":")[0-9]{4}/#
    let aged = text.replacing(made) { "\($0.output.1)2001" }
    #expect(aged != text)
    try notes.fileForWriting(file).write(Array(aged.utf8))
    #expect(try states(cli)["old.pdf"] == "removed")
    _ = try cli.succeed("\(Self.deliver) report.pdf")
    let found = try states(cli)
    #expect(found["old.pdf"] == nil && found["new.pdf"] == "removed", "\(found)")
  }

  @Test func otherLayoutsHaveNoInbox() throws {
    let cli = try CommandLine()
    try cli.directory.write("%PDF-1.7\n", at: "report.pdf")
    try cli.directory.write("x", at: "home/.var/app/org.a.A/data/x")
    for command in ["inbox list", "inbox check"] {
      let refused = try cli.run("interapp \(command) --layout flatpak --root home")
      #expect(refused.code == 2 && refused.errors.contains("no inboxes"), "\(refused.errors)")
    }
  }

  /// A delivery that is killed at any of its changes leaves a complete file with its note, or
  /// nothing.
  @Test(.enabled(if: Strace.isPermitted)) func aKilledDeliveryLeavesAllOrNothing() throws {
    let calls = "mkdirat,fsync,renameat,renameat2,unlinkat,write,fchmodat,fchmod"
    var (number, found) = (0, Set<String>())
    while number < 200 {
      number += 1
      let cli = try sample(inMemory: true)
      let strace = try Strace(calls, killingAt: number)
      let outcome = try cli.run("\(Self.deliver) report.pdf", under: strace.command)
      _ = try cli.succeed("\(Self.deliver) report.pdf")
      let states = try states(cli)
      let names = try Directory.open(path: cli.directory.path(place(cli))).names()
      #expect(names.allSatisfy { !AtomicFile.isTemporary($0) }, "\(number): \(names)")
      #expect(states["report.pdf"] == "unchanged", "\(number): \(states)")
      #expect(states["report-1.pdf"] ?? "unchanged" == "unchanged", "\(number): \(states)")
      found.insert(states["report-1.pdf"] == nil ? "nothing" : "all")
      if outcome.code == 0 { break }
    }
    #expect(found == ["nothing", "all"] && number > 5)
  }
}
