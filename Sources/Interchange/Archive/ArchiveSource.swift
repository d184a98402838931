package import Codecs
package import SystemIO

/// The entries of an archive of any format that libarchive reads: tar in all its variants, cpio,
/// zip, 7-Zip and others, compressed or not.
///
/// Names lead nowhere: a name with `..` is skipped, the leading slash of an absolute one is
/// dropped, and targets of links are bytes that nothing follows.
package struct ArchiveSource: ~Copyable, EntrySource {
  private let file: any NamedArchiveInput
  private var reader: ArchiveReader
  package private(set) var skipped = SkippedEntries()
  package private(set) var owners = OwnerNames()
  /// The path of the current entry for messages.
  private var current: ByteString = ""
  /// Entries to return before the next one of the archive, in reverse order.
  private var pending: [ForeignEntry] = []
  /// In a cpio archive, the hard links of each file whose content comes with the last one.
  private var links: [[ByteString]: [ForeignEntry]] = [:]
  /// The files whose content came with a hard link: it comes again with others in some formats.
  private var filled: Set<[ByteString]> = []
  /// The number of damaged headers without a sound one between them.
  private var failures = 0
  private var hasEnded = false

  private static let action = "read the archive"
  /// The number of consecutive damaged headers after which the rest counts as damaged. Behind a
  /// damaged header of a tar each block of 512 bytes of the lost file is one: this is 2 GiB.
  private static let failureLimit = 1 << 22

  /// Opens an archive.
  ///
  /// - Throws: `unknownFormat` if it is not an archive, or not a zip archive if that is required.
  package init(
    _ file: any NamedArchiveInput, format: ArchiveReader.Format = .any
  ) throws(InterchangeError) {
    self.file = file
    do throws(CodecError) {
      reader = try ArchiveReader(file, format: format)
    } catch {
      throw Self.failure(of: file) ?? InterchangeError(error, Self.action, subject: file.name)
    }
  }

  /// The error of a file that could not be read, or whose reading was stopped.
  private static func failure(of file: any NamedArchiveInput) -> InterchangeError? {
    if file.isStopped {
      return InterchangeError(
        .interrupted, action, subject: file.name, reason: "it was interrupted",
        hint: "run it again")
    }
    return file.failure.map { InterchangeError($0, action, subject: file.name) }
  }

  package var madeAt: Timestamp? { file.modified }

  package var keepsNames: Bool { reader.keepsNames }

  /// The format in libarchive's words, with the compression: "GNU tar format, zstd".
  package var formatName: String {
    let (format, compression) = reader.formatName
    return compression.map { "\(format), \($0)" } ?? format
  }

  package mutating func next() throws(InterchangeError) -> ForeignEntry? {
    while pending.isEmpty {
      guard let member = try nextMember() else {
        try requireUnchanged()
        return nil
      }
      pending = entries(of: member).reversed()
    }
    let entry = pending.removeLast()
    current = entry.joinedPath
    return entry
  }

  package mutating func read(
    into buffer: UnsafeMutableRawBufferPointer
  ) throws(InterchangeError) -> Int {
    do throws(CodecError) {
      return try reader.read(into: buffer)
    } catch { throw fault(error, inEntry: !reader.isEnded) }
  }

  package mutating func skipHole() throws(InterchangeError) -> UInt64 {
    do throws(CodecError) {
      return try reader.skipHole()
    } catch { throw fault(error, inEntry: !reader.isEnded) }
  }

  /// Returns the next member. Damaged headers are recorded, as long as the archive can be read.
  private mutating func nextMember() throws(InterchangeError) -> ArchiveMember? {
    while true {
      do throws(CodecError) {
        let member = try reader.next()
        failures = 0
        if member == nil { noteRemark() }
        return member
      } catch {
        failures += 1
        let canContinue = file.failure == nil && !file.isStopped
        guard !reader.isEnded, failures < Self.failureLimit, canContinue else {
          recordFilesWithoutContent()
          throw fault(error, inEntry: false)
        }
        // One record, although the search for the next sound header fails at each block before it.
        if failures == 1 {
          skipped.append(path: file.name, reason: "an entry or more are damaged: \(error.reason)")
        }
      }
    }
  }

  /// Checks that the file did not change while it was read: a tar has no checksums of contents.
  private func requireUnchanged() throws(InterchangeError) {
    guard file.hasChanged else { return }
    var fault = InterchangeError(
      .damaged, Self.action, subject: file.name, reason: InterchangeError.changedReason)
    fault.isSuspect = true
    throw fault
  }

  /// Records, once, what the file contains besides the archive.
  private mutating func noteRemark() {
    guard !hasEnded else { return }
    hasEnded = true
    if let remark = reader.remark {
      skipped.append(path: file.name, reason: remark, isPropertyOnly: true)
    }
  }

  /// Records the files of a cpio archive whose last name, with the content, is after the damage.
  /// Such a file may really be empty.
  private mutating func recordFilesWithoutContent() {
    for path in links.keys.map({ ByteString(joining: $0) }).sorted() {
      skipped.append(
        path: path, reason: "its content may be missing: it comes with the file's last name")
    }
    links = [:]
  }

  private func fault(_ error: CodecError, inEntry: Bool) -> InterchangeError {
    if let failure = Self.failure(of: file) { return failure }
    let plain = InterchangeError(error, Self.action, subject: file.name, inEntry: inEntry)
    var fault = InterchangeError(
      plain.kind, Self.action, subject: file.name, reason: error.reason,
      offset: reader.consumedBytes)
    fault.isSuspect = reader.isSuspect || file.hasChanged
    return fault
  }
}

// MARK: - Entries

extension ArchiveSource {
  /// Returns the entry of a member, or none after recording why. A member can be several entries
  /// (`resolvingLink`).
  private mutating func entries(of member: ArchiveMember) -> [ForeignEntry] {
    guard let path = member.path.map({ ByteString($0) }) else {
      skipped.append(
        path: file.name, reason: "an entry's name is not text of the encoding that it claims")
      return []
    }
    if member.isRenamed {
      skipped.append(
        path: path,
        reason: "the content is there, but perhaps under a wrong name: the directory of the "
          + "archive has another name for this entry, so one of the two is damaged")
    }
    do throws(PathFault) {
      let components = try PathComponents.parse(path)
      var entry = ForeignEntry(
        path: components, kind: try kind(of: member), permissions: member.mode,
        owner: member.owner, group: member.group,
        modified: Timestamp(seconds: member.modified, nanoseconds: member.nanoseconds))
      if components.isEmpty, entry.kind != .directory {
        throw PathFault(reason: "its name is empty")
      }
      if case .file = entry.kind { filled.remove(components) }
      entry.attributes = attributes(of: member, path)
      owners.add(user: member.owner, name: member.userName)
      owners.add(group: member.group, name: member.groupName)
      return resolvingLink(entry, of: member)
    } catch {
      skipped.append(path: path, reason: error.reason)
      return []
    }
  }

  private func kind(of member: ArchiveMember) throws(PathFault) -> ForeignEntry.Kind {
    if member.isEncrypted { throw PathFault(reason: "it is encrypted") }
    switch member.kind {
    case .file(let size): return .file(size: size ?? 0)
    case .directory: return .directory
    case .symbolicLink(let target):
      if target.isEmpty { throw PathFault(reason: "the target of the link is empty") }
      if target.contains(0) {
        throw PathFault(reason: "the target of the link contains a NUL byte")
      }
      return .symlink(target: ByteString(target))
    case .hardLink(let target, _):
      let components: [ByteString]
      do throws(PathFault) {
        components = try PathComponents.parse(ByteString(target))
      } catch {
        let name = ByteString(target)
        throw PathFault(reason: "the target '\(name)' of the hard link: \(error.reason)")
      }
      if components.isEmpty { throw PathFault(reason: "the target of the hard link is empty") }
      return .hardLink(to: components)
    case .fifo: return .fifo
    case .characterDevice(let major, let minor): return .characterDevice(major: major, minor: minor)
    case .blockDevice(let major, let minor): return .blockDevice(major: major, minor: minor)
    case .other: throw PathFault(reason: "it is a socket or has an unknown type")
    case .unreadableLink:
      throw PathFault(reason: "the target of the link is not text of the encoding that it claims")
    }
  }

  /// Returns the attributes; of two with the same name, such as those that bsdtar writes in two
  /// encodings, the last one.
  private mutating func attributes(
    of member: ArchiveMember, _ path: ByteString
  ) -> [ForeignEntry.Attribute] {
    for omission in member.omissions {
      skipped.append(path: path, reason: omission, isPropertyOnly: true)
    }
    var values: [ByteString: [UInt8]] = [:]
    for attribute in member.attributes {
      let name = ByteString(attribute.name)
      if name.isEmpty || name.count > 255 {
        skipped.append(
          path: path, reason: "an attribute with an invalid name was dropped", isPropertyOnly: true)
      } else {
        values[name] = attribute.value
      }
    }
    return values.sorted { $0.key < $1.key }.map { .init(name: $0.key, value: $0.value) }
  }

  /// Returns the entry itself, or for a hard link that has the content, first the file under its
  /// first name and then all its links again: those that came before had no content yet. Content
  /// that comes with further links is the same: making the file again would part it from them.
  private mutating func resolvingLink(
    _ entry: ForeignEntry, of member: ArchiveMember
  ) -> [ForeignEntry] {
    guard case .hardLink(let target) = entry.kind,
      case .hardLink(_, let size) = member.kind
    else { return [entry] }
    if filled.contains(target) { return [entry] }
    if reader.isCPIO { links[target, default: []].append(entry) }
    guard size > 0 else { return [entry] }
    filled.insert(target)
    var first = entry
    first.path = target
    first.kind = .file(size: size)
    return [first] + (links.removeValue(forKey: target) ?? [entry])
  }
}
