import Foundation
import SystemIO
import TestSupport
import Testing

/// Document packages in `interapp deliver` and `interapp inbox`: directories that users see as one
/// file.
struct InboxPackageTests {
  private static let deliver = "interapp deliver --to notebook --root device"
  private static let ends = "--app notebook --root device"

  /// A sample device whose app opens rich text packages, and a package `Notes.rtfd`.
  private func sample() throws -> CommandLine {
    let cli = try CommandLine(inMemory: true)
    _ = try cli.succeed("sample device")
    let script = """
      import glob, plistlib
      (path,) = glob.glob("device/data/Containers/Bundle/Application/*/Notebook.app/Info.plist")
      with open(path, "rb") as file: info = plistlib.load(file)
      info["CFBundleDocumentTypes"] = [
          {"CFBundleTypeName": "Rich text", "LSItemContentTypes": ["com.apple.rtfd"]}]
      with open(path, "wb") as file: plistlib.dump(info, file)
      """
    let edited = try Program.run("/usr/bin/python3", ["-c", script], in: cli.directory.url)
    #expect(edited.code == 0, "\(edited.errors)")
    try cli.directory.write("{\\rtf1 text}", at: "Notes.rtfd/TXT.rtf")
    try cli.directory.write("picture", at: "Notes.rtfd/images/a/1.png")
    try Directory.open(path: cli.directory.path("Notes.rtfd/images")).createLink(
      "first.png", to: "a/1.png")
    return cli
  }

  private func inbox(_ cli: CommandLine) throws -> ByteString {
    let containers = try #require(
      try cli.jsonLines("apps --root device --json").first?["containers"] as? [[String: Any]])
    let data = containers.first { $0["path"] as? String == "apps/org.example.notebook/data" }
    return ByteString(try #require(data?["real_path"] as? String))
      .appending("Documents/Inbox")
  }

  private func states(_ cli: CommandLine) throws -> [String: String] {
    let lines = try cli.run("interapp inbox check \(Self.ends) --json").output
    var states: [String: String] = [:]
    for line in lines.split(separator: "\n") {
      let file = try CommandLine.object(String(line))
      let name = (file["path"] as? String)?.split(separator: "/").last
      states[String(name ?? "")] = file["state"] as? String
    }
    // The sample device has a file there.
    return states.filter { $0.key.hasPrefix("Notes") }
  }

  private func text(_ path: ByteString) throws -> String {
    String(decoding: try Descriptor.open(path: path).readAll(limit: 1 << 20) ?? [], as: UTF8.self)
  }

  @Test func aPackageIsDeliveredAsAWhole() throws {
    let cli = try sample()
    #expect(try cli.succeed("\(Self.deliver) Notes.rtfd --dry-run").contains("would be delivered"))
    let told = try cli.json("\(Self.deliver) Notes.rtfd --json")
    #expect(told["package"] as? Bool == true && told["type"] as? String == "com.apple.rtfd")
    #expect(told["size"] as? Int == 19 && (told["hash"] as? String)?.count == 64)
    let copy = try inbox(cli).appending("Notes.rtfd")
    #expect(try text(copy.appending("TXT.rtf")) == "{\\rtf1 text}")
    let images = try Directory.open(path: copy.appending("images"))
    #expect(try images.target(of: "first.png") == "a/1.png")
    #expect(try images.directory("a").status("1.png").permissions == 0o444)
    #expect(try images.status().permissions == 0o755)
    #expect(try cli.json("\(Self.deliver) Notes.rtfd --json")["path"] as? String != nil)
    #expect(try states(cli)["Notes.rtfd"] == "unchanged")
    #expect(try states(cli)["Notes-1.rtfd"] == "unchanged")
    try cli.directory.directory.createDirectory("Notes-empty.rtfd")
    #expect(try cli.json("\(Self.deliver) Notes-empty.rtfd --json")["size"] as? Int == 0)
    #expect(try states(cli)["Notes-empty.rtfd"] == "unchanged")
  }

  /// Holes take no time: neither those of a package whose size exceeds any number, nor those of a
  /// directory that the app made in its inbox.
  @Test(.timeLimit(.minutes(1))) func hugeHolesAreNotRead() throws {
    let cli = try sample()
    let package = try Directory.open(path: cli.directory.path("Notes.rtfd"))
    for name: ByteString in ["1", "2", "3"] {
      try package.create(name, permissions: 0o644).truncate(to: UInt64(Int64.max))
    }
    for options in ["", " --dry-run"] {
      let refused = try cli.run("\(Self.deliver) Notes.rtfd\(options)")
      #expect(refused.code == 1 && refused.errors.contains("it needs "), "\(refused)")
      #expect(refused.errors.contains("'sandboxctl purge' makes room"), "\(refused)")
    }
    let inbox = try Directory.open(path: try inbox(cli))
    try inbox.createDirectory("Notes-own.rtfd")
    try inbox.directory("Notes-own.rtfd").create("hole", permissions: 0o644)
      .truncate(to: UInt64(Int64.max))
    #expect(try states(cli)["Notes-own.rtfd"] == "unknown")
  }

  @Test func unsafeAndOtherDirectoriesAreRefusedWithTheReason() throws {
    let cli = try sample()
    let package = try Directory.open(path: cli.directory.path("Notes.rtfd"))
    try cli.directory.write("secret", at: "outside")
    for target: ByteString in ["../outside", "/etc/passwd", "images/../../outside", "./images/.."] {
      try package.createLink("link", to: target)
      let refused = try cli.run("\(Self.deliver) Notes.rtfd")
      #expect(refused.code == 1, "\(target)")
      #expect(refused.errors.contains("'link' in it is a link to"), "\(refused.errors)")
      #expect(try cli.run("\(Self.deliver) Notes.rtfd --dry-run").code == 1)
      try package.remove("link")
    }
    try package.createSpecial("pipe", kind: .fifo, permissions: 0o600)
    let special = try cli.run("\(Self.deliver) Notes.rtfd")
    #expect(special.code == 1 && special.errors.contains("'pipe' in it is neither"))
    try package.remove("pipe")
    let deep = ByteString(String(repeating: "d/", count: 64) + "file")
    try cli.directory.write("x", at: ByteString("Notes.rtfd").appending(deep))
    let tooDeep = try cli.run("\(Self.deliver) Notes.rtfd")
    #expect(tooDeep.code == 1 && tooDeep.errors.contains("a path of more than 64 names"))
    try package.removeTree("d")
    try cli.directory.write("x", at: "Folder/file")
    let folder = try cli.run("\(Self.deliver) Folder")
    #expect(folder.code == 1 && folder.errors.contains("'public.folder', which is not a document"))
    // A package whose type the app does not open.
    try cli.directory.write("x", at: "Talk.key/index.apxl")
    let other = try cli.run("\(Self.deliver) Talk.key Notes.rtfd")
    #expect(other.code == 3 && other.errors.contains("no type to which 'com.apple.keynote.key'"))
    #expect(try Directory.open(path: inbox(cli)).names().contains("Notes.rtfd"))
    #expect(try !Directory.open(path: inbox(cli)).names().contains { AtomicFile.isTemporary($0) })
  }

  @Test func checkFindsEachChangeOfAPackage() throws {
    let cli = try sample()
    let changes: [(name: String, state: String, script: String)] = [
      ("Notes.rtfd", "changed", "chmod u+w TXT.rtf; echo x > TXT.rtf; chmod 444 TXT.rtf"),
      ("Notes-1.rtfd", "changed", "echo x > new"), ("Notes-2.rtfd", "changed", "rm -f TXT.rtf"),
      ("Notes-3.rtfd", "writable", "chmod u+w images/a/1.png"),
      ("Notes-4.rtfd", "changed", "ln -sf /etc/passwd images/first.png"),
      ("Notes-5.rtfd", "changed", "mv images pictures"),
      ("Notes-6.rtfd", "changed", "mkfifo pipe"),
      ("Notes-7.rtfd", "unchanged", ":"),
      ("Notes-8.rtfd", "removed", "cd ..; rm -rf Notes-8.rtfd"),
    ]
    for change in changes {
      _ = try cli.succeed("\(Self.deliver) Notes.rtfd")
      let place = "\(try inbox(cli))/\(change.name)"
      let done = try Program.run("/bin/sh", ["-c", "cd '\(place)' && \(change.script)"])
      #expect(done.code == 0, "\(done.errors)")
    }
    let found = try states(cli)
    for change in changes { #expect(found[change.name] == change.state, "\(change.script)") }
    #expect(try cli.run("interapp inbox check \(Self.ends)").code == 5)
  }

  @Test func packagesAreClaimedAndCleaned() throws {
    let cli = try sample()
    for _ in 0..<2 { _ = try cli.succeed("\(Self.deliver) Notes.rtfd") }
    let told = try cli.json("interapp inbox claim Notes.rtfd \(Self.ends) --json")
    #expect(told["size"] as? Int == 19)
    let claimed = try inbox(cli).parent.appending("Notes.rtfd")
    #expect(try text(claimed.appending("TXT.rtf")) == "{\\rtf1 text}")
    #expect(try Directory.open(path: claimed).status("TXT.rtf").permissions == 0o644)
    let cleaned = try cli.jsonLines(
      "interapp inbox clean \(Self.ends) --older-than 0s --yes --json")
    let operation = try #require(cleaned.first?["trash"] as? String)
    let kept = ByteString(
      "device/.sandboxctl/trash/\(operation)/apps/org.example.notebook/data/Documents/Inbox/"
        + "Notes-1.rtfd/images/a/1.png")
    #expect(try cli.directory.read(kept) == Array("picture".utf8))
    #expect(try Directory.open(path: inbox(cli)).names().isEmpty)
  }

  /// A delivery that is killed at any of its changes leaves a complete package with its note, or
  /// nothing.
  @Test(.enabled(if: Strace.isPermitted)) func aKilledDeliveryLeavesAllOrNothing() throws {
    let calls =
      "mkdirat,fsync,syncfs,symlinkat,renameat,renameat2,unlinkat,write,fchmodat,fchmod"
    var (number, step, found) = (0, 1, Set<String>())
    let all = Host.environment("SANDBOXCTL_TEST_ALL") == "1"
    while number < 300 {
      number += step
      step = all ? 1 : 9
      let cli = try sample()
      let strace = try Strace(calls, killingAt: number)
      let outcome = try cli.run("\(Self.deliver) Notes.rtfd", under: strace.command)
      _ = try cli.succeed("\(Self.deliver) Notes.rtfd")
      let states = try states(cli)
      let names = try Directory.open(path: inbox(cli)).names()
      #expect(names.allSatisfy { !AtomicFile.isTemporary($0) }, "\(number): \(names)")
      #expect(states.values.allSatisfy { $0 == "unchanged" }, "\(number): \(states)")
      found.insert(states.count == 1 ? "nothing" : "all")
      if outcome.code == 0 { break }
    }
    #expect(found == ["nothing", "all"] && number > 5)
  }

  /// A scenario delivers a package like the command, and refuses any other directory.
  @Test func aScenarioDeliversAPackageAsAWhole() throws {
    let cli = try sample()
    try cli.directory.write("text", at: "Plain/a.txt")
    let inbox = "apps/org.example.notebook/data/Documents/Inbox"
    try cli.directory.write(
      """
      scenario: packages
      schema: 1
      device: {root: device}
      steps:
        - deliver: {app: notebook, file: Notes.rtfd}
        - deliver: {app: notebook, file: Notes.rtfd}
        - deliver: {app: notebook, file: Notes.rtfd, name: Letter.rtfd}
        - interrupt:
            step: {deliver: {app: notebook, file: Notes.rtfd, name: Cut.rtfd}}
            at: 12
            of: call
        - deliver: {app: notebook, file: Plain}
          fails: type_refused
        - expect:
            - {match: \(inbox)/Notes.rtfd/images/a/1.png, exists: true, class: inbox}
            - {match: \(inbox)/Notes-1.rtfd/TXT.rtf, exists: true}
            - {match: \(inbox)/Letter.rtfd/TXT.rtf, exists: true}
            - {match: \(inbox)/Plain, exists: false}
      """, at: "packages.yaml")
    let run = try cli.run("scenario run packages.yaml")
    #expect(run.code == 0, "\(run.output)\(run.errors)")
  }
}
