import Codecs
import SystemIO
import TestSupport
import Testing

@testable import Interchange

/// The property lists and the metadata of a written backup have the form that other programs
/// require. (CommandTests.ITunesPeersTests lets six of them read backups.)
struct MobileSyncListsTests {
  private func list(
    _ name: ByteString, of device: MobileSyncDevice, domains: Set<ByteString> = []
  ) throws -> PropertyList {
    let lists = MobileSyncLists(device: device, domains: domains, keys: nil)
    return try #require(lists.all.first { $0.name == name }).list
  }

  /// A device only accepts files of listed containers: apps, extensions and groups.
  @Test func allContainersWithFilesAreListed() throws {
    var device = MobileSyncDevice()
    device.apps = [.init(identifier: "com.example.app", build: "42")]
    let manifest = try list(
      "Manifest.plist", of: device,
      domains: [
        "AppDomain-com.example.app", "AppDomainPlugin-com.example.app.e", "AppDomain-org.unlisted",
        "AppDomainGroup-group.example", "AppDomainGroup-com.example.app", "HomeDomain",
        "SysContainerDomain-com.apple.x",
      ])
    let listed = manifest["Applications"]?.dictionaryValue ?? []
    let classes = listed.map { [$0.key, $0.value["ContainerContentClass"]?.stringValue] }
    #expect(
      classes == [
        ["com.example.app", "Data/Application"], ["com.example.app.e", "Data/PluginKitPlugin"],
        ["group.example", "Shared/AppGroup"], ["org.unlisted", "Data/Application"],
      ])
    #expect(listed.allSatisfy { $0.value["CFBundleIdentifier"]?.stringValue == $0.key })
    #expect(manifest["Applications"]?["com.example.app"]?["CFBundleVersion"] == .string("42"))
    let read = MobileSyncProperties(manifest: manifest, info: nil, status: nil).device
    #expect(read.apps.map(\.identifier) == ["com.example.app", "org.unlisted"])
  }

  /// With another version, readers treat the backup as one in an older form, or fail.
  @Test(
    arguments: [
      (nil, "10.3"), ("", "10.3"), ("9.3.5", "10.3"), ("10.1.1", "10.3"), ("10.2", "10.3"),
      ("10.2.1", "10.2.1"), ("10.3.4", "10.3.4"), ("11", "11"), ("17.5", "17.5"), ("26.1", "26.1"),
      ("Debian 12", "10.3"), ("12.x", "10.3"), ("12.", "10.3"), ("99999999999999999999", "10.3"),
    ] as [(String?, String)])
  func theVersionIsOneOfTheForm(known: String?, written: String) throws {
    var device = MobileSyncDevice()
    device.osVersion = known
    let manifest = try list("Manifest.plist", of: device)
    #expect(manifest["Lockdown"]?["ProductVersion"] == .string(written))
    #expect(try list("Info.plist", of: device)["Product Version"] == .string(written))
  }

  /// Readers need these members, and an import does not use the empty strings as names.
  @Test func unknownMembersAreEmpty() throws {
    let manifest = try list("Manifest.plist", of: MobileSyncDevice())
    for name in ["DeviceName", "ProductType", "SerialNumber"] {
      #expect(manifest["Lockdown"]?[name] == .string(""), "\(name)")
    }
    let read = MobileSyncProperties(manifest: manifest, info: nil, status: nil).device
    #expect(read.name == nil && read.productType == nil && read.serialNumber == nil)
  }

  /// Different backups of a device have different identifiers; the same backup always has the same
  /// one.
  @Test func theIdentifierIsOfTheDeviceAndTheDate() throws {
    func identifier(_ device: String, at seconds: Int64) throws -> String? {
      var described = MobileSyncDevice()
      (described.identifier, described.madeAt) = (device, Timestamp(seconds: seconds))
      return try list("Status.plist", of: described)["UUID"]?.stringValue
    }
    let first = try #require(try identifier("a", at: 1))
    #expect(ByteString(first).isUUID && first == first.uppercased(), "\(first)")
    #expect(try identifier("a", at: 1) == first)
    #expect(try identifier("a", at: 2) != first && identifier("b", at: 1) != first)
  }

  /// The keybag of an unencrypted backup opens with the empty password, as that of a device does.
  @Test func plainBackupsHaveAKeybag() throws {
    let manifest = try list("Manifest.plist", of: MobileSyncDevice())
    guard case .data(let bytes) = manifest["BackupKeyBag"] else {
      Issue.record("no keybag")
      return
    }
    let keybag = try Keybag(bytes)
    #expect(keybag.first == nil && keybag.rounds == 10_000)
    #expect(keybag.classes.map(\.number) == [1, 2, 3, 4])
    let none: [UInt8] = []
    #expect(keybag.unlock(password: SecretBytes(copying: none.span)) != nil)
    #expect(keybag.unlock(password: SecretBytes(copying: Array("word".utf8).span)) == nil)
    #expect(manifest["ManifestKey"] == nil && manifest["IsEncrypted"] == .bool(false))
  }

  @Test func identifiersAreStableAndDiffer() {
    let first = MobileSyncDevice.identifier(for: "name:one")
    #expect(first == MobileSyncDevice.identifier(for: "name:one") && first.utf8.count == 40)
    #expect(first != MobileSyncDevice.identifier(for: "name:two"))
  }

  /// One file with larger metadata makes a whole backup unreadable for iphone_backup_decrypt.
  @Test func metadataStaysBelowTheLimitOfReaders() throws {
    let attributes = (0..<4).map {
      ForeignEntry.Attribute(
        name: ByteString("user.\($0)"), value: [UInt8](repeating: 1, count: 30_000))
    }
    let entry = ForeignEntry(
      path: ["f"], kind: .file(size: 0), attributes: attributes)
    let metadata = MobileSyncMetadata(of: entry, isEncrypted: false)
    #expect(metadata.file.attributes.map(\.name) == ["0", "1"])
    #expect(metadata.remarks.count == 2 && metadata.remarks[0].contains("user.2 is too large"))
    let path = ByteString([UInt8](repeating: 0x61, count: 4095))
    #expect(try metadata.file.archive(relativePath: path).count < 100 << 10)
  }

  @Test func unsupportedTimesBecomeTheNearest() {
    for (seconds, written) in [
      (Int64.max, Int64(9_223_372_036)), (Int64.min, -9_223_372_036), (1 << 33, 1 << 33),
      (-1, -1),
    ] {
      let entry = ForeignEntry(
        path: ["f"], kind: .directory, modified: Timestamp(seconds: seconds))
      let metadata = MobileSyncMetadata(of: entry, isEncrypted: false)
      #expect(metadata.file.modified == written && metadata.file.born == written)
      #expect(metadata.remarks.count == (seconds == written ? 0 : 1), "\(seconds)")
    }
  }
}
