internal import Codecs
internal import SandboxModel
package import SystemIO

/// A container of the sample: its location, metadata, entries, and removed entries.
struct ContainerPlan {
  /// The path below the device's directory.
  let directory: ByteString
  /// The entries, with paths relative to the container.
  private(set) var entries: [SampleEntry] = []
  /// The entries that exist on other days but not on this one, with the time of removal; nil if
  /// they are still to be added.
  private(set) var absent: [(path: ByteString, removed: Timestamp?)] = []
  private(set) var databases: [SampleDatabase] = []

  /// The last day of changes.
  static let lastDay = 30

  /// Creates a container with its metadata. `recordedUUID` is the UUID in the metadata if it
  /// differs from the directory's name, as on restored devices.
  init(
    _ kind: ContainerKind, _ uuid: String, of identifier: String, recordedUUID: String? = nil
  ) throws(SampleError) {
    let (family, contentClass): (String, Int64) =
      switch kind {
      case .bundle: ("Bundle/Application", 1)
      case .extension: ("Data/PluginKitPlugin", 4)
      case .group: ("Shared/AppGroup", 7)
      default: ("Data/Application", 2)
      }
    directory = ByteString("data/Containers/\(family)/\(uuid)")
    let metadata = PropertyList.members([
      "MCMMetadataActiveDPClass": .integer(0),
      "MCMMetadataContentClass": .integer(contentClass),
      "MCMMetadataIdentifier": .string(identifier),
      "MCMMetadataInfo": .members([
        "com.apple.MobileInstallation.ContentProtectionClass": .integer(0)
      ]),
      "MCMMetadataSchemaVersion": .integer(39),
      "MCMMetadataUUID": .string(recordedUUID ?? uuid),
    ])
    let name: ByteString = ".com.apple.mobile_container_manager.metadata.plist"
    add([try .binaryPlist(name, metadata, day: -200)])
  }

  /// The path of the container on the device, independent of the sample's location, for absolute
  /// links into it.
  var devicePath: ByteString {
    ByteString("/private/var/mobile/" + directory.description.dropFirst("data/".count))
  }

  mutating func add(_ more: [SampleEntry]) { entries += more }

  /// Adds the files of a database last changed on a day. With a log, only the log changed on that
  /// day.
  mutating func add(_ plan: Database, day: Int) {
    if plan.commits.isEmpty {
      entries.append(.file(plan.path, plan.file, day: day))
    } else {
      let log = ByteString(plan.path.bytes + "-wal".utf8)
      entries.append(.file(plan.path, plan.file, day: -1))
      entries.append(.file(log, plan.log, day: day))
    }
    databases.append(
      SampleDatabase(
        path: directory.appending(plan.path), table: plan.table, rowsInFile: plan.rows.count,
        rowsWithLog: (plan.commits.last ?? plan.rows).count))
  }

  /// Records an entry that was removed on a day.
  mutating func remove(_ path: ByteString, day: Int) {
    absent.append((path, .sample(day: day, of: path)))
  }

  /// Records an entry that a later day adds.
  mutating func expect(_ path: ByteString) { absent.append((path, nil)) }
}

extension ContainerPlan {
  /// The states of a database: the content of its file, and each further state in its log.
  struct Database {
    let path: ByteString
    let table: String
    let columns: String
    let rows: [SQLiteRow]
    var commits: [[SQLiteRow]] = []

    /// The bytes of the database file.
    var file: [UInt8] { image(rows).file }

    /// The bytes of the log with the commits.
    var log: [UInt8] {
      SQLiteLog(after: image(rows), commits: commits.map(image), salt: 0x5a4d_504c_0000_0001).bytes
    }

    private func image(_ rows: [SQLiteRow]) -> SQLiteImage {
      SQLiteImage(
        table: table, columns: columns, rows: rows, journal: commits.isEmpty ? .rollback : .log)
    }
  }
}

/// A database of the sample: its location and the expected content.
package struct SampleDatabase: Hashable, Sendable {
  /// The path of its file below the device's directory.
  package let path: ByteString
  /// The name of its table.
  package let table: String
  /// The number of rows in the database file alone.
  package let rowsInFile: Int
  /// The number of rows including the write-ahead log; the same without a log.
  package let rowsWithLog: Int
}

extension SampleEntry {
  /// Returns a binary property list.
  static func binaryPlist(
    _ path: ByteString, _ value: PropertyList, day: Int, permissions: UInt16 = 0o644
  ) throws(SampleError) -> SampleEntry {
    do {
      return file(path, try value.binary(), day: day, permissions: permissions)
    } catch {
      throw SampleError(ModelError(writing: error), at: path)
    }
  }

  /// Returns an XML property list.
  static func xmlPlist(
    _ path: ByteString, _ value: PropertyList, day: Int, permissions: UInt16 = 0o644
  ) throws(SampleError) -> SampleEntry {
    do {
      return file(path, try value.xml(), day: day, permissions: permissions)
    } catch {
      throw SampleError(ModelError(writing: error), at: path)
    }
  }
}

extension PropertyList {
  /// Returns a dictionary with its members in this order.
  static func members(_ members: KeyValuePairs<String, PropertyList>) -> PropertyList {
    .dictionary(members.map { Member($0.key, $0.value) })
  }
}
