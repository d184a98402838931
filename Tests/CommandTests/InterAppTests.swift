import Foundation
import SystemIO
import TestSupport
import Testing

/// `interapp handlers` and `interapp open` on the sample device and on devices with odd apps.
struct InterAppTests {
  private func sample() throws -> CommandLine {
    let cli = try CommandLine()
    _ = try cli.succeed("sample device")
    return cli
  }

  private func apps(_ object: [String: Any], _ key: String = "handlers") -> [String] {
    (object[key] as? [[String: Any]] ?? []).compactMap { $0["app"] as? String }
  }

  @Test func handlersOfATypeAreListed() throws {
    let cli = try sample()
    let command = "interapp handlers --root device --type"
    let text = try cli.succeed("\(command) com.adobe.pdf")
    #expect(text.contains("Owner") && text.hasSuffix("opened by org.example.notebook\n"), "\(text)")
    let png = try cli.json("\(command) public.png --json")
    #expect(apps(png) == ["org.example.darkroom"])
    #expect(png["opened_by"] as? String == "org.example.darkroom")
    let type = try #require(png["type"] as? [String: Any])
    #expect((type["conforms_to"] as? [String])?.contains("public.image") == true)
    #expect(type["origin"] as? String == "system")
    for (line, words) in [
      ("\(command) public.movie", "no app opens it\n"),
      ("interapp handlers --root device --scheme nobodys", "no app opens it\n"),
      ("interapp open nobodys:x --root device", "no app opens it\n"),
    ] {
      let nobody = try cli.run(line)
      #expect(nobody.code == 5 && nobody.output.contains(words), "\(line): \(nobody)")
    }
    let wrong = try cli.run("\(command) nodot")
    #expect(wrong.code == 2 && wrong.errors.contains("reverse-DNS"))
  }

  @Test func handlersOfAFileFollowItsExtension() throws {
    let cli = try sample()
    try cli.directory.write("plain text\n", at: "note.txt")
    try cli.directory.write("%PDF-1.7\n", at: "bare")
    try cli.directory.write("%PDF-1.7\n", at: "photo.png")
    let note = try cli.json("interapp handlers --root device --file note.txt --json")
    #expect(apps(note) == ["org.example.notebook"])
    let bare = try cli.succeed("interapp handlers --root device --file bare")
    #expect(bare.contains("com.adobe.pdf, by its content"), "\(bare)")
    let photo = try cli.run("interapp handlers --root device --file photo.png")
    #expect(photo.code == 0 && photo.errors.contains("unlike its extension"))
    #expect(photo.output.contains("opened by org.example.darkroom"))
    #expect(try cli.run("interapp handlers --root device --file nowhere.png").code == 1)
    // It is not opened: no process writes to it.
    try cli.directory.directory.createSpecial("pipe.pdf", kind: .fifo, permissions: 0o600)
    for command in ["handlers --file pipe.pdf", "share pipe.pdf", "handlers --file /dev/null"] {
      let refused = try cli.run("interapp \(command) --root device")
      #expect(refused.code == 1 && refused.output.isEmpty, "\(command)")
      #expect(refused.errors.contains("it is a FIFO, a socket or a device"), "\(refused.errors)")
    }
  }

  @Test func handlersOfSchemesNameSystemAppsAndConflicts() throws {
    let cli = try sample()
    let command = "interapp handlers --root device"
    let feed = try cli.succeed("\(command) --scheme FEED")
    #expect(feed.hasSuffix("opened by org.example.reader\n"), "\(feed)")
    #expect(try cli.succeed("\(command) --scheme tel").contains("opened by Phone"))
    #expect(try cli.succeed("\(command) --url http://maps.apple.com/?q=x").contains("Maps"))
    #expect(
      try cli.succeed("\(command) --os-version 5.1 --url http://maps.apple.com/").contains("Safari")
    )
    try addApp(cli, "com.example.rival", schemes: ["feed", "mailto"])
    let both = try cli.json("\(command) --scheme feed --json")
    #expect(both["conflict"] as? Bool == true && both["opened_by"] is NSNull)
    #expect(apps(both) == ["com.example.rival", "org.example.reader"])
    #expect(try cli.succeed("\(command) --scheme feed").contains("defines no winner"))
    #expect(try cli.succeed("\(command) --scheme mailto").contains("not asked: com.example.rival"))
    let findings = try cli.succeed("\(command) --scheme feed --findings")
    #expect(findings.contains("the scheme 'mailto' belongs to the system"), "\(findings)")
  }

  @Test func openShowsTheReceiverTheCallsAndThePicture() throws {
    let cli = try sample()
    let text = try cli.succeed("interapp open notebook://new/a%20b?title=x --root device")
    #expect(text.contains("path: /a b\n") && text.contains("query item: title = x\n"), "\(text)")
    #expect(text.contains("opened by org.example.notebook, which is launched\n"))
    #expect(text.contains("application:openURL:options:\n"))
    #expect(text.contains("NO: the URL is suppressed"))
    let old = try cli.json(
      "interapp open notebook:x --root device --os-version 4.1 --state background --json")
    let calls = (old["calls"] as? [[String: Any]] ?? []).compactMap { $0["selector"] as? String }
    #expect(calls.contains("application:handleOpenURL:"))
    #expect((old["image"] as? [String: Any])?["kind"] as? String == "snapshot")
    #expect(old["launched"] as? Bool == false)
  }

  /// A URL without an authority and a path has only a resource specifier (NSURL).
  @Test func openShowsWhatAnOpaqueURLPasses() throws {
    let cli = try sample()
    for (url, specifier) in [
      ("mailto:x@y", "x@y"), ("notebook:abc/def", "abc/def"), ("notebook:a?b=c#d", "a?b=c#d"),
    ] {
      let text = try cli.run(["interapp", "open", url, "--root", "device"]).output
      #expect(text.contains("\n  resource specifier: \(specifier)\n"), "\(text)")
    }
    for url in ["notebook://host/a", "notebook:/a", "notebook:"] {
      let text = try cli.run(["interapp", "open", url, "--root", "device"]).output
      #expect(text.hasPrefix("URL  ") && !text.contains("resource specifier"), "\(text)")
    }
  }

  @Test func openShowsNoPassword() throws {
    let cli = try sample()
    let text = try cli.succeed("interapp open notebook://me:secret@host/a --root device")
    #expect(text.hasPrefix("URL  notebook://me:***@host/a\n"), "\(text)")
    #expect(text.contains("password: (not shown)") && !text.contains("secret"))
    for command in [
      "interapp open notebook://me:secret@host/a --json", "interapp share url:http://me:secret@a/",
      "interapp share page:http://me:secret@a/ --json", "interapp open notebook://me:secret@host/%",
      "interapp open a://me:secret@b@c/",
      "interapp handlers --url notebook://me:secret@host --json",
    ] {
      let outcome = try cli.run(command + " --root device")
      let all = outcome.output + outcome.errors
      #expect(!all.contains("secret") && !all.isEmpty, "\(command): \(all)")
    }
    let told = try cli.json("interapp open notebook://me:secret@host/a --root device --json")
    let received = told["received"] as? [String: Any]
    #expect(received?["password"] as? String == "***" && received?["host"] as? String == "host")
  }

  @Test func openFailsWithoutADefinedReceiver() throws {
    let cli = try sample()
    #expect(try cli.run("interapp open nobody:x --root device").code == 5)
    try addApp(cli, "com.example.rival", schemes: ["feed"])
    let both = try cli.run("interapp open feed:x --root device")
    #expect(both.code == 5 && both.output.contains("defines no winner"))
    for url in ["a:%0", "a:%00", "nothing", "a:\u{7f}", "a:é"] {
      let refused = try cli.run(["interapp", "open", url, "--root", "device"])
      #expect(refused.code == 2 && refused.errors.contains("cannot open the URL"), "\(url)")
    }
    // An argument has at most 128 KiB on Linux.
    let long = "a:" + String(repeating: "x", count: 100_000)
    let refused = try cli.run(["interapp", "open", long, "--root", "device"])
    #expect(refused.code == 2 && refused.errors.contains("more than the limit of 65536"))
  }

  @Test func damagedBundlesAreNamedAndTheOthersWork() throws {
    let cli = try sample()
    let bundle = try addApp(cli, "com.example.broken", schemes: ["feed"])
    for content in ["", "<plist><array/></plist>", "bplist00 broken"] {
      try cli.directory.write(content, at: bundle.appending("Info.plist"))
      let found = try cli.run("interapp handlers --scheme feed --root device")
      #expect(found.code == 0 && found.output.contains("opened by org.example.reader"))
      #expect(found.errors.contains("not read: "), "\(found.errors)")
    }
  }

  @Test func localizationsNameTheURLTypes() throws {
    let cli = try sample()
    let bundle = try addApp(cli, "com.example.rival", schemes: ["rival"])
    let strings = bundle.appending("en.lproj/InfoPlist.strings")
    func findings() throws -> String {
      try cli.succeed("interapp handlers --scheme rival --root device --findings --all")
        .split(separator: "\n").filter { $0.contains(": com.example.rival: ") }
        .joined(separator: "\n")
    }
    #expect(!(try findings().contains("InfoPlist.strings")))
    for (content, words) in [
      ("/* names */ \"other\" = \"x\";", "has no text for the URL type 'com.example.rival'"),
      ("\"unclosed", "is not a readable strings file"),
    ] {
      try cli.directory.write(content, at: strings)
      #expect(try findings().contains(words))
    }
    try cli.directory.write("// names\n\"com.example.rival\" = \"Rival \\\"1\\\"\";\n", at: strings)
    #expect(!(try findings().contains("InfoPlist.strings")))
  }

  @Test func optionsAndLayoutsAreChecked() throws {
    let cli = try sample()
    for line in [
      "interapp handlers --root device", "interapp handlers --type a.b --scheme c --root device",
      "interapp handlers --scheme 1x --root device",
      "interapp handlers --scheme x --os-version x --root device",
      "interapp open a:b --state asleep --root device",
      "interapp open a:b --idiom watch --root device",
      "interapp handlers --scheme x --root device --layout folder",
    ] { #expect(try cli.run(line).code == 2, "\(line)") }
  }

  /// 200 apps with 20 document types and 20 declared types each. The budget, 100 ms of elapsed
  /// time, is measured by `Benchmarks/interapp.py`. The tests run on busy machines, beside many
  /// others: here the processor time of the release build is bounded, 0.1 s when it is alone.
  @Test func twoHundredAppsAreFast() throws {
    let cli = try sample()
    for number in 0..<200 {
      try addApp(cli, "com.example.app\(number)", schemes: ["s\(number)", "shared"], types: 20)
    }
    let all = try cli.json("interapp handlers --scheme shared --root device --json")
    #expect(apps(all).count == 200)
    let outcome = try cli.run(
      "interapp handlers --type com.example.app7.t3 --root device --quiet",
      under: ["bash", "-c", "TIMEFORMAT='took %U %S'; time \"$0\" \"$@\""])
    #expect(outcome.code == 0)
    let words = outcome.errors.split(separator: "\n").last { $0.hasPrefix("took ") }
    let seconds = try #require(words).split(separator: " ").compactMap { Double($0) }
    #expect(seconds.count == 2 && seconds.reduce(0, +) < 0.5, "\(outcome.errors)")
  }

  /// Adds an app to the device and returns the path of its bundle.
  @discardableResult
  private func addApp(
    _ cli: CommandLine, _ identifier: String, schemes: [String], types: Int = 0
  ) throws -> ByteString {
    let digits = String(
      Array(identifier.utf8).reduce(7) { ($0 &* 31 &+ Int($1)) & 0xffff_ffff_ffff }, radix: 16)
    let uuid =
      "0A0A0A0A-0000-4000-8000-" + String(repeating: "0", count: 12 - digits.count)
      + digits.uppercased()
    let container = "device/data/Containers/Bundle/Application/\(uuid)"
    try cli.directory.write(
      """
      <plist><dict><key>MCMMetadataIdentifier</key><string>\(identifier)</string>
      <key>MCMMetadataContentClass</key><integer>1</integer></dict></plist>
      """, at: ByteString("\(container)/.com.apple.mobile_container_manager.metadata.plist"))
    let names = schemes.map { "<string>\($0)</string>" }.joined()
    let declared = (0..<types).map { number in
      "<dict><key>UTTypeIdentifier</key><string>\(identifier).t\(number)</string>"
        + "<key>UTTypeConformsTo</key><array><string>public.data</string></array></dict>"
    }.joined()
    let documents = (0..<types).map { number in
      "<dict><key>CFBundleTypeName</key><string>D\(number)</string><key>LSItemContentTypes</key>"
        + "<array><string>\(identifier).t\(number)</string></array></dict>"
    }.joined()
    let bundle = ByteString("\(container)/App.app")
    try cli.directory.write(
      """
      <plist><dict><key>CFBundleIdentifier</key><string>\(identifier)</string>
      <key>CFBundleURLTypes</key><array><dict><key>CFBundleURLName</key>
      <string>\(identifier)</string><key>CFBundleURLSchemes</key><array>\(names)</array></dict>
      </array><key>UTExportedTypeDeclarations</key><array>\(declared)</array>
      <key>CFBundleDocumentTypes</key><array>\(documents)</array></dict></plist>
      """, at: bundle.appending("Info.plist"))
    return bundle
  }
}
