internal import CArchive

// The properties of libarchive's entry, in the types of this package.
extension ArchiveMember {
  init(_ entry: OpaquePointer) {
    path = unsafe LibArchive.bytes(
      archive_entry_pathname(entry) ?? archive_entry_pathname_utf8(entry))
    kind = unsafe Self.kind(entry)
    mode = unsafe UInt16(truncatingIfNeeded: archive_entry_perm(entry) & 0o7777)
    let (user, group) = unsafe (archive_entry_uid(entry), archive_entry_gid(entry))
    (owner, self.group) = (Self.number(user), Self.number(group))
    userName =
      unsafe LibArchive.bytes(archive_entry_uname(entry) ?? archive_entry_uname_utf8(entry)) ?? []
    groupName =
      unsafe LibArchive.bytes(archive_entry_gname(entry) ?? archive_entry_gname_utf8(entry)) ?? []
    modified = unsafe Int64(archive_entry_mtime(entry))
    nanoseconds = unsafe UInt32(max(0, min(999_999_999, Int(archive_entry_mtime_nsec(entry)))))
    isEncrypted = unsafe archive_entry_is_data_encrypted(entry) != 0
    if !Self.numbers.contains(user) { noteInvalid(user, of: "owner") }
    if !Self.numbers.contains(group) { noteInvalid(group, of: "group") }
    unsafe readAttributes(entry)
    unsafe readLists(entry)
  }

  /// The numbers that a user or a group can have: the largest one of 32 bits means "unchanged" in
  /// system calls, so a restored file would keep the owner of the process.
  private static let numbers: ClosedRange<Int64> = 0...Int64(UInt32.max - 1)
  /// The number in place of one that does not fit, as in Linux (`DEFAULT_OVERFLOWUID`).
  private static let overflowNumber: UInt32 = 65_534

  private static func number(_ number: Int64) -> UInt32 {
    numbers.contains(number) ? UInt32(number) : overflowNumber
  }

  /// Records a number that was replaced; the name does not belong to the replacement.
  private mutating func noteInvalid(_ number: Int64, of role: String) {
    if role == "owner" { userName = [] } else { groupName = [] }
    omissions.append(
      "its \(role) has the number \(number), which Linux does not have: \(Self.overflowNumber) was "
        + "stored instead")
  }

  private static func kind(_ entry: OpaquePointer) -> Kind {
    let size = unsafe UInt64(clamping: archive_entry_size(entry))
    let hardLink = unsafe archive_entry_hardlink(entry) ?? archive_entry_hardlink_utf8(entry)
    if let target = unsafe LibArchive.bytes(hardLink) {
      return .hardLink(target: target, size: size)
    }
    let major = unsafe UInt32(truncatingIfNeeded: archive_entry_rdevmajor(entry))
    let minor = unsafe UInt32(truncatingIfNeeded: archive_entry_rdevminor(entry))
    switch unsafe archive_entry_filetype(entry) & LibArchive.FileType.mask {
    case LibArchive.FileType.regular:
      return .file(size: unsafe archive_entry_size_is_set(entry) != 0 ? size : nil)
    case LibArchive.FileType.directory: return .directory
    case LibArchive.FileType.symbolicLink:
      let text = unsafe archive_entry_symlink(entry) ?? archive_entry_symlink_utf8(entry)
      return unsafe LibArchive.bytes(text).map { .symbolicLink(target: $0) } ?? .unreadableLink
    case LibArchive.FileType.fifo: return .fifo
    case LibArchive.FileType.characterDevice: return .characterDevice(major: major, minor: minor)
    case LibArchive.FileType.blockDevice: return .blockDevice(major: major, minor: minor)
    default: return .other
    }
  }

  private mutating func readAttributes(_ entry: OpaquePointer) {
    unsafe archive_entry_xattr_reset(entry)
    while true {
      var name: UnsafePointer<CChar>?
      var value: UnsafeRawPointer?
      var size = 0
      guard unsafe archive_entry_xattr_next(entry, &name, &value, &size) == ARCHIVE_OK else {
        return
      }
      guard let name = unsafe LibArchive.bytes(name) else { continue }
      let bytes = unsafe Array(UnsafeRawBufferPointer(start: value, count: size))
      attributes.append(PaxMember.Attribute(name: name, value: bytes))
    }
  }
}

// MARK: - Access control lists

extension ArchiveMember {
  /// Adds the POSIX ACLs as the attributes in which Linux stores them.
  private mutating func readLists(_ entry: OpaquePointer) {
    for (type, name) in [
      (ARCHIVE_ENTRY_ACL_TYPE_ACCESS, "system.posix_acl_access"),
      (ARCHIVE_ENTRY_ACL_TYPE_DEFAULT, "system.posix_acl_default"),
    ] {
      let name = Array(name.utf8)
      guard unsafe archive_entry_acl_count(entry, type) > 0 else { continue }
      if type == ARCHIVE_ENTRY_ACL_TYPE_ACCESS, let mask = unsafe Self.mask(entry) {
        mode = mode & ~0o070 | mask << 3
      }
      if attributes.contains(where: { $0.name == name }) { continue }
      if let value = unsafe list(entry, type) {
        attributes.append(PaxMember.Attribute(name: name, value: value))
      }
    }
    if unsafe archive_entry_acl_types(entry) & Self.newerListTypes != 0 {
      omissions.append("its NFSv4 access control list was dropped")
    }
  }

  /// `ARCHIVE_ENTRY_ACL_TYPE_NFS4`, a macro that Swift does not import: allow, deny, audit, alarm.
  private static let newerListTypes: Int32 = 0x0400 | 0x0800 | 0x1000 | 0x2000

  /// Returns the mask of a list, which Linux has as the group's permissions in a file's mode;
  /// libarchive has those of the list's own group entry there.
  private static func mask(_ entry: OpaquePointer) -> UInt16? {
    unsafe archive_entry_acl_reset(entry, ARCHIVE_ENTRY_ACL_TYPE_ACCESS)
    while true {
      var (type, permissions, tag, id) = (Int32(0), Int32(0), Int32(0), Int32(0))
      var name: UnsafePointer<CChar>?
      let status = unsafe archive_entry_acl_next(
        entry, ARCHIVE_ENTRY_ACL_TYPE_ACCESS, &type, &permissions, &tag, &id, &name)
      guard status == ARCHIVE_OK || status == ARCHIVE_WARN else { return nil }
      if tag == ARCHIVE_ENTRY_ACL_MASK { return UInt16(permissions & 7) }
    }
  }

  /// Returns an ACL in the kernel's form (include/uapi/linux/posix_acl_xattr.h): the version 2,
  /// then tag, permissions and id of each entry, little-endian, in the order of the tags and ids.
  private mutating func list(_ entry: OpaquePointer, _ wanted: Int32) -> [UInt8]? {
    var rows: [(tag: UInt16, permissions: UInt16, id: UInt32)] = []
    unsafe archive_entry_acl_reset(entry, wanted)
    while true {
      var (type, permissions, tag, id) = (Int32(0), Int32(0), Int32(0), Int32(0))
      var name: UnsafePointer<CChar>?
      let status = unsafe archive_entry_acl_next(
        entry, wanted, &type, &permissions, &tag, &id, &name)
      guard status == ARCHIVE_OK || status == ARCHIVE_WARN else { break }
      guard let number = Self.listTags[tag] else { continue }
      let isNamed = number == 2 || number == 8
      if isNamed, id < 0 {
        let text = unsafe LibArchive.bytes(name).map { String(decoding: $0, as: UTF8.self) } ?? ""
        omissions.append(
          "its access control list names '\(text)' without a number, and was dropped")
        return nil
      }
      rows.append((number, UInt16(permissions & 7), isNamed ? UInt32(id) : .max))
    }
    rows.sort { ($0.tag, $0.id) < ($1.tag, $1.id) }
    return rows.reduce(into: [2, 0, 0, 0]) { bytes, row in
      LittleEndian.append(row.tag, to: &bytes)
      LittleEndian.append(row.permissions, to: &bytes)
      LittleEndian.append(row.id, to: &bytes)
    }
  }

  /// The kernel's tags (include/uapi/linux/posix_acl.h) of libarchive's.
  private static let listTags: [Int32: UInt16] = [
    ARCHIVE_ENTRY_ACL_USER_OBJ: 0x01, ARCHIVE_ENTRY_ACL_USER: 0x02,
    ARCHIVE_ENTRY_ACL_GROUP_OBJ: 0x04, ARCHIVE_ENTRY_ACL_GROUP: 0x08,
    ARCHIVE_ENTRY_ACL_MASK: 0x10, ARCHIVE_ENTRY_ACL_OTHER: 0x20,
  ]
}
