import Codecs

@testable import Interchange
@testable import SystemIO

extension Target {
  /// Android backups, and the XML files of apps.
  static let androidTargets = [
    Target(name: "android-backup", run: androidBackup),
    Target(name: "android-xml", run: androidXML),
    Target(name: "android-rules", run: androidRules),
    Target(name: "android-resources", run: androidResources),
    Target(name: "android-package", run: androidPackage),
    Target(name: "android-manifest", run: androidManifest),
  ]

  /// A backup, with the password `x` if it is encrypted. Entries must have valid paths, and a file
  /// must not have more bytes than it claims.
  @Sendable private static func androidBackup(_ bytes: [UInt8]) {
    var count = 0
    let start = Array(bytes.prefix(AndroidBackupHeader.sizeLimit))
    guard let header = try? AndroidBackupHeader(start, count: &count, of: "fuzz.ab") else { return }
    require(count <= start.count, "a header is longer than the file")
    var again = 0
    let written = header.encoded()
    require(
      (try? AndroidBackupHeader(written, count: &again, of: "fuzz.ab")) == header
        && again == written.count, "a header changed when it was written and read again")
    // More rounds would only take time.
    if let encryption = header.encryption, encryption.rounds > 100 { return }
    guard let file = try? Descriptor.inMemory(bytes), (try? file.seek(to: 0)) != nil else { return }
    let password = { () throws(InterchangeError) in SecretBytes(copying: [0x78].span) }
    guard let reader = try? AndroidBackupReader(file, password: password) else { return }
    var buffer = [UInt8](repeating: 0, count: 4096)
    var total = 0
    while total < 16 << 20, let entry = try? reader.next() {
      require(PathComponents.fault(in: entry.path) == nil, "an entry has an invalid path")
      guard case .file(let size) = entry.kind else { continue }
      var content: UInt64 = 0
      while let count = try? buffer.withUnsafeMutableBytes({ try reader.read(into: $0) }), count > 0
      {
        content += UInt64(count)
        total += count
        if total > 16 << 20 { return }
      }
      require(content <= size, "a file has more bytes than it claims")
    }
  }

  /// An XML file in either form.
  @Sendable private static func androidXML(_ bytes: [UInt8]) {
    guard let root = try? AndroidXML(bytes) else { return }
    var pending = [(root, 1)]
    while let (element, depth) = pending.popLast() {
      require(depth <= AndroidXML.Limit.depth, "elements are nested too deep")
      pending += element.children.map { ($0, depth + 1) }
    }
    _ = try? AndroidAppManifest(bytes)
  }

  /// Rules of backups, from either file, and their decisions for some paths. The overlay made from
  /// them must be valid YAML for any paths.
  @Sendable private static func androidRules(_ bytes: [UInt8]) {
    var rules = AutoBackupRules(targetVersion: 30)
    if let section = try? AutoBackupRules.Section(fullBackupContent: bytes) {
      rules.fullBackup = .rules(section)
      for rule in section.includes + section.excludes {
        require(!rule.location.path.contains(".."), "a rule leaves its directory")
      }
    } else if let extraction = try? AutoBackupRules.DataExtraction(bytes) {
      rules.extraction = extraction
    } else {
      return
    }
    checkOverlay(of: bytes)
    for domain in AutoBackupDomain.allCases {
      for destination in AutoBackupRules.Destination.allCases {
        for path: [ByteString] in [[], ["a"], ["a", "b"], ["cache", "x"]] {
          let location = AutoBackupLocation(domain, path)
          let decision = rules.decision(for: location, to: destination, over: [])
          guard case .excluded(.rule(let rule)) = decision else { continue }
          require(location.path.starts(with: rule.location.path), "a rule excludes another path")
        }
      }
    }
  }
}

extension Target {
  /// A resource table, and some of its values.
  @Sendable private static func androidResources(_ bytes: [UInt8]) {
    guard let table = try? AndroidResources(bytes) else { return }
    for type: UInt32 in [0, 1, 2, 3, 4, 0xff] {
      for index: UInt32 in [0, 1, 2, 3, 0xffff] {
        guard case .text(let text) = try? table.value(of: 0x7f00_0000 | type << 16 | index) else {
          continue
        }
        require(text.utf8.count <= 3 * bytes.count, "a text is longer than the table")
      }
    }
  }

  /// A package of an app. Its rules must not name a path outside the app.
  @Sendable private static func androidPackage(_ bytes: [UInt8]) {
    guard let file = try? Descriptor.inMemory(bytes),
      let archive = try? ArchiveFile(file, name: "fuzz.apk"),
      let package = try? AndroidPackage(archive)
    else { return }
    require(!package.name.isEmpty, "an app has no name")
    for destination in AutoBackupRules.Destination.allCases {
      let location = AutoBackupLocation(.credentialProtected, ["files", "a"])
      _ = package.rules.decision(for: location, to: destination)
    }
  }
}

extension Target {
  /// A manifest of a package in a backup. An accepted one must be the same after writing it.
  @Sendable private static func androidManifest(_ bytes: [UInt8]) {
    guard let manifest = AndroidManifest(bytes) else { return }
    require(!manifest.package.isEmpty, "a package has no name")
    let written = manifest.encoded()
    guard written.count < AndroidManifest.sizeLimit else { return }
    require(
      AndroidManifest(written) == manifest, "a manifest changed when it was written and read again")
  }

  private static func checkOverlay(of bytes: [UInt8]) {
    guard let file = try? Descriptor.inMemory(bytes) else { return }
    var rules = AutoBackupRuleSet()
    guard (try? rules.add(ByteString("/proc/self/fd/\(file.raw)"))) != nil else { return }
    withExtendedLifetime(file) {}
    do throws(CodecError) {
      let text = try YAML.parse(Array(rules.overlay(of: "rules.xml").utf8))
      require(text["overlay"] != nil, "an overlay is not one")
    } catch { fatalError("an overlay is not YAML: \(error)") }
  }
}

/// Small backups, XML files, resource tables and packages.
enum AndroidSeeds {
  static let all: [(target: String, bytes: [UInt8])] =
    tables.map { ("android-resources", $0) }
    + packages.map { ("android-package", $0) }
    + backups.map { ("android-backup", $0) }
    + (texts.map { Array($0.utf8) } + binaries).map { ("android-xml", $0) }
    + (texts.map { Array($0.utf8) } + binaries).map { ("android-rules", $0) }
    + [("android-manifest", manifest)]

  private static let manifest = AndroidManifest(
    package: "a.b", versionCode: 42, platformVersion: 30, installer: "com.example.store",
    hasPackageFile: true, certificates: ["3082", "3083"]
  ).encoded()

  private static let texts = [
    """
    <full-backup-content>
      <include domain="file" path="a" requireFlags="clientSideEncryption|deviceToDeviceTransfer"/>
      <exclude domain="database" path="x.db"/>
    </full-backup-content>
    """,
    """
    <data-extraction-rules xmlns:tools="http://schemas.android.com/tools">
      <cloud-backup disableIfNoEncryptionCapabilities="true">
        <exclude domain="sharedpref" path="p" tools:ignore="x"/>
      </cloud-backup>
      <device-transfer><include domain="device_root" path="./a/"/></device-transfer>
    </data-extraction-rules>
    """,
  ]

  private static var binaries: [[UInt8]] {
    let rule = BinaryXMLBuilder.Element(
      name: "include",
      attributes: [
        .init(name: "domain", value: .text("file")), .init(name: "path", value: .text("é")),
      ])
    let file = BinaryXMLBuilder.Element(name: "full-backup-content", children: [rule])
    return [true, false].map { BinaryXMLBuilder.build(file, isUTF8: $0) }
  }

  /// Resource tables in each of their forms.
  private static var tables: [[UInt8]] {
    ResourceTableBuilder.Form.allCases.map { form in
      ResourceTableBuilder.build([
        .init(type: 1, values: [0: .text("res/a.xml"), 2: .reference(0x7f02_0001)], form: form),
        .init(type: 2, values: [1: .flag(false), 3: .complex], version: 31),
      ])
    }
  }

  /// Packages whose manifests refer to rules and flags by resource ID.
  private static var packages: [[UInt8]] {
    typealias Element = BinaryXMLBuilder.Element
    typealias Attribute = BinaryXMLBuilder.Attribute
    func attribute(_ number: UInt32, _ resource: UInt32) -> Attribute {
      Attribute(name: "a\(number)", value: .typed(0x01, resource), resource: number)
    }
    let manifest = Element(
      name: "manifest", attributes: [Attribute(name: "package", value: .text("a.b"))],
      children: [
        Element(
          name: "application",
          attributes: [attribute(0x0101_0280, 0x7f02_0001), attribute(0x0101_04eb, 0x7f01_0000)])
      ])
    guard let table = tables.first, let rules = binaries.first else { return [] }
    let names = ["AndroidManifest.xml", "resources.arsc", "res/a.xml"]
    let contents = [BinaryXMLBuilder.build(manifest), table, rules]
    return [ZipBuilder(zip(names, contents).map { ZipBuilder.Entry($0, $1) }).bytes()]
  }

  private static var backups: [[UInt8]] {
    [false, true].compactMap { isCompressed in
      let target = Target()
      let path: [ByteString] = ["apps", "a.b", "data", "files", "x"]
      guard
        let writer = try? AndroidBackupWriter(
          to: "seed.ab", isCompressed: isCompressed, write: target.write),
        (try? writer.add(ForeignEntry(path: path, kind: .file(size: 4)))) != nil,
        (try? Array("text".utf8).withUnsafeBytes { try writer.write($0) }) != nil,
        (try? writer.finish()) != nil
      else { return nil }
      return target.bytes
    }
  }

  private final class Target {
    var bytes: [UInt8] = []
    func write(_ span: Span<UInt8>) throws(InterchangeError) {
      for index in span.indices { bytes.append(span[index]) }
    }
  }
}
