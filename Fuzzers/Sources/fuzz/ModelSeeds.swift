import Codecs
import SystemIO

@testable import SandboxModel

/// Property lists of both kinds, programs with entitlements, Flatpak's files, JSON and policies.
enum ModelSeeds {
  static func all(project: ByteString) throws -> [(target: String, bytes: [UInt8])] {
    let list = PropertyList.dictionary([
      .init("CFBundleIdentifier", .string("org.example.notebook"))
    ])
    var seeds = [("property-list", try list.binary())]
    seeds += lists.map { ("property-list", Array($0.utf8)) }
    if let binary = try? PropertyList(reading: Array(lists[0].utf8)).binary() {
      seeds.append(("property-list", binary))
    }
    let entitlements = MachOBuilder.entitlements(["group.org.example.library"])
    let both = MachOBuilder(signature: entitlements, section: entitlements)
    seeds += [both.thin(), both.universal(is64: false), both.universal(is64: true)]
      .map { ("mach-o", $0) }
    seeds += migrations.map { ("migration", Array($0.utf8)) }
    seeds += packages.map { ("package", $0) }
    seeds += keyFiles.map { ("key-file", Array($0.utf8)) }
    seeds += unitFiles.map { ("unit-file", Array($0.utf8)) }
    seeds += json.map { ("json", Array($0.utf8)) }
    for name in ["ios", "everything", "flatpak"] {
      let file = try Directory.open(path: project.appending("policies"))
        .file(ByteString("\(name).yaml"))
      if let text = try file.readAll(limit: 1 << 20) { seeds.append(("policy", text)) }
    }
    for name in ["firefox", "xdg"] {
      let file = try Directory.open(path: project.appending("policies/migrations"))
        .file(ByteString("\(name).yaml"))
      if let text = try file.readAll(limit: 1 << 20) { seeds.append(("migration-table", text)) }
    }
    for name in ["first-exclusion-mark", "interrupted-update-loses-nothing"] {
      let file = try Directory.open(path: project.appending("policies/scenarios"))
        .file(ByteString("\(name).yaml"))
      if let text = try file.readAll(limit: 1 << 20) { seeds.append(("scenario", text)) }
    }
    seeds += configurations.map { ("rewrite", $0) }
    return seeds
  }

  /// Configuration files, each after the number of its rule.
  private static let configurations: [[UInt8]] = [
    [0]
      + Array(
        "[Profile0]\nIsRelative=0\nPath=/home/u/.a/b\n[InstallAB]\nDefault=/home/u/.a\n".utf8),
    [1] + Array("[AB]\r\nDefault=/home/u/.a/b\r\nLocked=1\r\n".utf8),
    [2]
      + Array(
        #"{"addons":[{"path":"/home/u/.a/\u00e9","rootURI":"jar:file:///home/u/.a/b!/"}]}"#.utf8),
    [3] + Array(#"{"download":{"default_directory":"/home/u/.a"},"x":[1.50,{}]}"#.utf8),
  ]

  private static let lists = [
    """
    <?xml version="1.0" encoding="UTF-8"?>
    <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
    <plist version="1.0"><dict><key>MCMMetadataIdentifier</key><string>org.example.a</string>
    <key>a</key><array><integer>-5</integer><real>1.5</real><true/><false/>
    <date>2026-01-02T03:04:05Z</date><data>AAEC/w==</data></array>
    <key>&lt;&#233;</key><string><![CDATA[<x>]]></string><!-- a remark --></dict></plist>
    """,
    "<plist><array/></plist>",
  ]

  private static let migrations = [
    """
    <plist><dict><key>Move</key><array><string>${ApplicationSupport}/Ex</string>
    <array><string>${Home}/.ex</string><string>${Library}/${BundleId}</string></array></array>
    <key>Symlink</key><array><string>${Documents}/Ex</string></array></dict></plist>
    """
  ]

  /// An .ipa with links and an extension, and a package for macOS.
  private static var packages: [[UInt8]] {
    let program = MachOBuilder(signature: MachOBuilder.entitlements(["group.com.example.x"]))
    let info = ZipBuilder.info("com.example.x.share", ["CFBundleExecutable": "S"])
    let ios = ZipBuilder.app([
      .init("Payload/X.app/X", program.thin(), mode: 0o100755),
      .init("Payload/X.app/a/l", Array("../X".utf8), mode: 0o120777),
      .init("Payload/X.app/PlugIns/S.appex/Info.plist", info),
    ])
    let mac = ZipBuilder([
      .init("X.app/Contents/Info.plist", ZipBuilder.info("com.example.x"), mode: 0),
      .init("X.app/Contents/Resources/container-migration.plist", Array(migrations[0].utf8)),
    ])
    return [ios.bytes(), mac.bytes()]
  }

  private static let unitFiles = [
    """
    [Unit]
    Description=A server
    [Service]
    StateDirectory=web 'with space' web/%i:link:ro
    # a remark
    CacheDirectory=a \\
      b\\x20c %%d
    LogsDirectory=
    DynamicUser=yes
    """,
    "com.example.a 10045 0 /data/user/0/com.example.a default 3003 0 42 1 @null\n",
  ]

  private static let keyFiles = [
    """
    [Application]
    name=org.example.Hello
    runtime=org.example.Platform/x86_64/master
    # a remark
    [Desktop Entry]
    Name = Hello
    """,
    "<component><releases><release version=\"1.2\" date=\"2026-01-01\"/></releases></component>",
  ]

  private static let json = [
    #"{"a":[1,-2,3.5e3,true,false,null,"x\u00e9\ud83d\ude00\n"],"b":{}}"#, "[[[[]]]]", "\"\"",
  ]
}
