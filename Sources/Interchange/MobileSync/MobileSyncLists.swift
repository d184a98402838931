internal import Codecs
internal import SystemIO

/// The property lists of a backup that is written.
struct MobileSyncLists {
  let device: MobileSyncDevice
  /// The keys of an encrypted backup.
  let keys: MobileSyncKeys?

  /// The version of iOS since which a backup has the form that is written: readers decide by it
  /// whether Manifest.db is encrypted.
  private static let firstVersion = "10.2"

  /// The lists with their names, in the order in which they are written.
  var all: [(name: ByteString, list: PropertyList)] {
    [("Info.plist", info), ("Manifest.plist", manifest), ("Status.plist", status)]
  }

  private var date: PropertyList { .date(Double((device.madeAt?.seconds ?? 0) - 978_307_200)) }

  /// The list of the computer, from which programs take the name of the backup.
  private var info: PropertyList {
    let apps = device.apps.compactMap { $0.identifier.utf8.map { PropertyList.string($0) } }
    return .dictionary(
      Self.texts([
        ("Device Name", device.name), ("Display Name", device.name),
        ("Product Type", device.productType), ("Product Version", device.osVersion),
        ("Build Version", device.buildVersion), ("Serial Number", device.serialNumber),
        ("Target Identifier", device.identifier), ("Unique Identifier", device.identifier),
        ("Target Type", "Device"),
      ]) + [
        .init("Installed Applications", .array(apps)), .init("Last Backup Date", date),
      ])
  }

  private var manifest: PropertyList {
    let apps = device.apps.compactMap { app in
      app.identifier.utf8.map { name in
        PropertyList.Member(
          name,
          .dictionary(
            Self.texts([
              ("CFBundleIdentifier", name), ("CFBundleVersion", app.build),
              ("ContainerContentClass", "Data/Application"),
            ])))
      }
    }
    let lockdown = Self.texts([
      ("BuildVersion", device.buildVersion), ("DeviceName", device.name),
      ("ProductType", device.productType),
      ("ProductVersion", device.osVersion ?? keys.map { _ in Self.firstVersion }),
      ("SerialNumber", device.serialNumber), ("UniqueDeviceID", device.identifier),
    ])
    var encryption: [PropertyList.Member] = []
    if let keys {
      encryption = [
        .init("BackupKeyBag", .data(keys.keybag)), .init("ManifestKey", .data(keys.manifestKey)),
      ]
    }
    let members: [PropertyList.Member] = [
      .init("Applications", .dictionary(apps)), .init("Date", date),
      .init("IsEncrypted", .bool(keys != nil)), .init("Lockdown", .dictionary(lockdown)),
      .init("SystemDomainsVersion", .string("24.0")), .init("Version", .string("10.0")),
      .init("WasPasscodeSet", .bool(false)),
    ]
    return .dictionary(members + encryption)
  }

  /// The list that marks the backup as complete.
  private var status: PropertyList {
    .dictionary([
      .init("BackupState", .string("new")), .init("Date", date),
      .init("IsFullBackup", .bool(true)), .init("SnapshotState", .string("finished")),
      .init("Version", .string("3.3")),
    ])
  }

  /// The members whose text is known.
  private static func texts(_ members: [(String, String?)]) -> [PropertyList.Member] {
    members.compactMap { name, text in text.map { PropertyList.Member(name, .string($0)) } }
  }
}
