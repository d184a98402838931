internal import Glibc

/// The processes of this machine and the files they use, from /proc (proc(5)).
///
/// Files are identified by device and inode, so the path by which a process opened one does not
/// matter. Processes that start during the search may be missed.
public enum Processes {
  /// A process that uses one of the given files.
  public struct Use: Sendable, Hashable {
    public let process: Int32
    /// The name of the process, at most 15 bytes (`comm`).
    public let name: ByteString
    /// The path by which the process refers to the file.
    public let file: ByteString
  }

  /// The result of a search.
  public struct Found: Sendable {
    /// One use for each process that uses any of the files.
    public internal(set) var uses: [Use] = []
    /// The processes whose files could not be examined.
    public internal(set) var unknown: [Process] = []
    /// The processes in a matching control group, each with the first such group.
    public internal(set) var members: [Process] = []
  }

  /// A process that could not be examined, or that is in a control group.
  public struct Process: Sendable, Hashable {
    public let number: Int32
    public let name: ByteString
    /// The user ID of the process.
    public let user: UInt32
    /// The path of its control group (cgroups(7)), or empty if unknown.
    public let controlGroup: ByteString
  }

  /// Finds processes that have one of the files open, mapped or as their working directory, except
  /// this process and its ancestors: a shell's working directory may be one of the files.
  ///
  /// - Parameters:
  ///   - proc: the mount point of the proc file system.
  ///   - isMeantGroup: whether a control group, by its path, matches; nil if none does.
  ///   - directories: absolute paths, below which every file matches by the path that the kernel
  ///     reports.
  public static func using(
    in proc: ByteString = Processes.proc, groups isMeantGroup: ((ByteString) -> Bool)? = nil,
    below directories: [ByteString] = [], _ isSelected: (FileIdentity) -> Bool
  ) throws(SystemError) -> Found {
    let all = try Directory.open(path: proc)
    let own = ancestors(all)
    var found = Found()
    for name in try all.names() {
      guard let number = name.utf8.flatMap({ Int32($0) }), !own.contains(number),
        let directory = try? all.directory(name)
      else { continue }
      if let isMeantGroup, let group = groups(directory).first(where: isMeantGroup) {
        found.members.append(process(number, directory, in: group))
      }
      inspect(at: number, in: directory, for: isSelected, below: directories, into: &found)
    }
    return found
  }

  /// The mount point of the proc file system.
  public static let proc: ByteString = "/proc"

  /// Returns the name of this process, at most 15 bytes (`comm`), or an empty one if it cannot be
  /// read.
  public static func ownName(in proc: ByteString = Processes.proc) -> ByteString {
    guard let own = try? Directory.open(path: proc.appending("self")) else { return "" }
    return line(of: "comm", in: own)
  }

  /// Returns the control groups of a process: one, or one in each hierarchy of version 1.
  private static func groups(_ directory: borrowing Directory) -> [ByteString] {
    let text = (try? read(directory.file("cgroup"), limit: 1 << 16)) ?? []
    return text.split(separator: UInt8(ascii: "\n")).map { line in
      ByteString(
        line.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false).last ?? [])
    }
  }

  private static func process(
    _ number: Int32, _ directory: borrowing Directory, in group: ByteString
  ) -> Process {
    Process(
      number: number, name: line(of: "comm", in: directory), user: user(directory),
      controlGroup: group)
  }

  /// Returns this process, its parent and so on, without process 1.
  private static func ancestors(_ all: borrowing Directory) -> Set<Int32> {
    var found: Set<Int32> = []
    var next = (try? all.target(of: "self")).flatMap { $0.utf8 }.flatMap { Int32($0) }
    while let number = next, number > 1, found.insert(number).inserted {
      guard let directory = try? all.directory(ByteString("\(number)")) else { break }
      next = Int32(exactly: statusNumber("PPid:", directory))
    }
    return found
  }

  /// Examines one process. A process that exits in the meantime uses no files.
  private static func inspect(
    at number: Int32, in directory: borrowing Directory, for isSelected: (FileIdentity) -> Bool,
    below directories: [ByteString], into found: inout Found
  ) {
    let name = line(of: "comm", in: directory)
    do throws(SystemError) {
      var file = try openFile(directory, below: directories, isSelected)
      if file == nil { file = try mapping(directory, below: directories, isSelected) }
      guard let file else { return }
      found.uses.append(Use(process: number, name: name, file: file))
    } catch {
      guard !error.isMissing, error.number != noSuchProcess, !isKernelThread(directory) else {
        return
      }
      found.unknown.append(process(number, directory, in: groups(directory).last ?? ""))
    }
  }

  /// Whether a process is a thread of the kernel, which has no files: by its flags (PF_KTHREAD in
  /// include/linux/sched.h), the ninth field of proc_pid_stat(5). The name before it may have
  /// spaces.
  private static func isKernelThread(_ directory: borrowing Directory) -> Bool {
    let text = (try? read(directory.file("stat"), limit: 1 << 12)) ?? []
    guard let end = text.lastIndex(of: UInt8(ascii: ")")) else { return false }
    let fields = text[end...].split(separator: UInt8(ascii: " "))
    guard fields.count > 7, let flags = UInt32(String(decoding: fields[7], as: UTF8.self)) else {
      return false
    }
    return flags & 0x0020_0000 != 0
  }

  /// ESRCH, the error of /proc for a process that has exited.
  private static let noSuchProcess: Int32 = 3

  private static func openFile(
    _ directory: borrowing Directory, below directories: [ByteString],
    _ isSelected: (FileIdentity) -> Bool
  ) throws(SystemError) -> ByteString? {
    for link in ["cwd", "root", "exe"] as [ByteString] {
      if let file = try file(link, in: directory, below: directories, isSelected) { return file }
    }
    let descriptors = try directory.directory("fd")
    for name in try descriptors.names() {
      if let file = try file(name, in: descriptors, below: directories, isSelected) { return file }
    }
    return nil
  }

  private static func file(
    _ link: ByteString, in directory: borrowing Directory, below directories: [ByteString],
    _ isSelected: (FileIdentity) -> Bool
  ) throws(SystemError) -> ByteString? {
    do throws(SystemError) {
      if !directories.isEmpty {
        let path = try directory.target(of: link)
        if directories.contains(where: path.isWithin) { return path }
      }
      guard isSelected(try directory.statusFollowing(link).identity) else { return nil }
      return (try? directory.target(of: link)) ?? link
    } catch {
      // The file was closed in the meantime, or a kernel thread has none.
      if error.isMissing || error.number == noSuchProcess { return nil }
      if isOutOfReach(error.number), (try? directory.target(of: link)) != nil { return nil }
      throw error
    }
  }

  /// Whether a file system refuses this program access to all of its files: a FUSE file system that
  /// belongs to another user or whose server has ended, or a remote one that has lost the file.
  /// This program has read nothing on it, so the file is none of those searched for. If the process
  /// itself cannot be examined, its links cannot be read either.
  private static func isOutOfReach(_ number: Int32) -> Bool {
    [EACCES, ENOTCONN, ECONNABORTED, ESTALE].contains(number)
  }

  /// Returns a mapped file, by its path: on some file systems the device numbers in `maps` differ
  /// from those of `stat(2)`.
  private static func mapping(
    _ directory: borrowing Directory, below directories: [ByteString],
    _ isSelected: (FileIdentity) -> Bool
  ) throws(SystemError) -> ByteString? {
    let maps = try read(directory.file("maps"), limit: 16 << 20)
    var last: ArraySlice<UInt8> = []
    for line in maps.split(separator: UInt8(ascii: "\n")) {
      guard let start = line.firstIndex(of: UInt8(ascii: "/")) else { continue }
      let path = line[start...]
      if path == last { continue }
      last = path
      let name = ByteString(path)
      if directories.contains(where: name.isWithin) { return name }
      guard let target = try? directory.statusFollowing(name), isSelected(target.identity) else {
        continue
      }
      return name
    }
    return nil
  }

  /// Returns the last line of a small file, or an empty one if it cannot be read.
  private static func line(of name: ByteString, in directory: borrowing Directory) -> ByteString {
    guard let bytes = try? read(directory.file(name), limit: 1 << 16) else { return "" }
    return ByteString(bytes.split(separator: UInt8(ascii: "\n")).last ?? [])
  }

  /// Returns the user of a process, from its status: the directory of a process that is not
  /// dumpable belongs to root.
  private static func user(_ directory: borrowing Directory) -> UInt32 {
    statusNumber("Uid:", directory)
  }

  /// Returns the first number after a word in the status of a process, or 0 if it cannot be read.
  private static func statusNumber(_ word: String, _ directory: borrowing Directory) -> UInt32 {
    let status = (try? read(directory.file("status"), limit: 1 << 16)) ?? []
    for line in status.split(separator: UInt8(ascii: "\n"))
    where line.starts(with: Array(word.utf8)) {
      let words = line.dropFirst(word.utf8.count).split {
        $0 == UInt8(ascii: "\t") || $0 == UInt8(ascii: " ")
      }
      return words.first.flatMap { UInt32(String(decoding: $0, as: UTF8.self)) } ?? 0
    }
    return 0
  }

  /// Returns all bytes of a file of unknown size, or the first `limit`.
  static func read(
    _ file: borrowing Descriptor, limit: Int
  ) throws(SystemError) -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < limit {
      let piece = try file.read(count: 64 * 1024, at: UInt64(bytes.count))
      if piece.isEmpty { break }
      bytes += piece
    }
    return bytes
  }
}
