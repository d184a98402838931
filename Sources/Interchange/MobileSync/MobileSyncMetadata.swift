internal import SystemIO

/// The metadata of an entry in the form of a backup, within the limits of the programs that read
/// backups. The type and the content are those of the sink.
struct MobileSyncMetadata {
  private(set) var file = MobileFile()
  /// The properties of the entry that the backup cannot represent, as clauses.
  private(set) var remarks: [String] = []

  /// The maximum number of bytes of the attributes of a file. iphone_backup_decrypt, and mvt with
  /// it, refuses a whole backup if the metadata of one file has more than 100 KiB; a path can take
  /// 8 KiB of that.
  static let attributesLimit = 80 << 10
  /// The times that a device can have, in seconds since 1970: APFS stores 64 bits of nanoseconds
  /// (Apple File System Reference, `j_inode_val_t`). Readers fail on others: Python's years end
  /// with 9999.
  static let times = (Int64.min / 1_000_000_000)...(Int64.max / 1_000_000_000)

  /// Converts the metadata of an entry.
  ///
  /// - Parameter isEncrypted: whether a file needs a class of data protection that has a key.
  init(of entry: ForeignEntry, isEncrypted: Bool) {
    (file.owner, file.group) = (entry.owner, entry.group)
    file.protectionClass = MobileFile.usualProtectionClass
    setTime(entry.modified.seconds)
    var attributeBytes = 0
    for attribute in entry.attributes {
      if attribute.name == MobileSyncSource.protectionAttribute {
        setProtectionClass(attribute.value, isEncrypted: isEncrypted)
        continue
      }
      guard attribute.name.bytes.starts(with: "user.".utf8), let name = attribute.name.utf8 else {
        remarks.append("the attribute \(attribute.name) is of Linux only")
        continue
      }
      let size = attribute.name.count + attribute.value.count
      guard attributeBytes + size <= Self.attributesLimit else {
        remarks.append(
          "the attribute \(attribute.name) is too large: readers of backups accept "
            + "\(Self.attributesLimit >> 10) KiB for the attributes of a file")
        continue
      }
      attributeBytes += size
      file.attributes.append(
        ForeignEntry.Attribute(
          name: ByteString(name.utf8.dropFirst(5)), value: attribute.value))
    }
  }

  /// Sets the time of the last change, or the nearest time that a device can have.
  private mutating func setTime(_ seconds: Int64) {
    file.modified = min(max(seconds, Self.times.lowerBound), Self.times.upperBound)
    (file.changed, file.born) = (file.modified, file.modified)
    if file.modified != seconds {
      remarks.append("its time is outside of the years 1677 to 2262, which a device can have")
    }
  }

  /// Sets the class of data protection from the digits of the attribute. In an encrypted backup, it
  /// is always a class with a key.
  private mutating func setProtectionClass(_ value: [UInt8], isEncrypted: Bool) {
    guard let number = UInt8(String(decoding: value, as: UTF8.self)) else { return }
    if !isEncrypted || MobileSyncKeys.classNumbers.contains(number) {
      file.protectionClass = number
    } else {
      remarks.append("its class of data protection, \(number), has no key")
    }
  }
}
