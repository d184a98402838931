internal import SystemIO

/// The files that each backup of the device writes: if one of them changes during an import, any
/// other may have changed as well.
struct MobileSyncMarks: Equatable {
  private struct Mark: Equatable {
    let size: UInt64
    let modified: Timestamp
  }

  private var marks: [Mark?] = []

  private static let names: [ByteString] = [
    "Manifest.plist", MobileSyncBackup.status, MobileSyncBackup.database, MobileSyncBackup.records,
  ]

  init(in directory: borrowing Directory) {
    for name in Self.names {
      guard let found = try? directory.statusIfPresent(name) else {
        marks.append(nil)
        continue
      }
      marks.append(Mark(size: found.size, modified: found.modified))
    }
  }
}
