internal import Lifecycle
internal import SystemIO

/// The units of systemd(1) that make a backup again and again for this user: a service, its timer,
/// and a service for its failure where one is wanted.
struct SystemdUnits {
  /// By file name.
  let files: [(name: String, text: String)]

  /// The first line of each, by which they are known to be ours.
  static let mark = "# Written by 'sandboxctl schedule install'."

  init(_ backup: ScheduledBackup) throws {
    let lines = [backup.program, backup.onFailure ?? "", backup.calendar.systemd] + backup.words
    guard !lines.contains(where: { $0.contains("\n") }) else {
      throw UsageError("a line of a unit cannot hold a newline", hint: "leave it out")
    }
    var files = [
      (backup.name + ".service", Self.service(backup)),
      (backup.name + ".timer", Self.timer(backup)),
    ]
    if let command = backup.onFailure {
      files.append((Self.failureName(backup), Self.failure(backup, command)))
    }
    self.files = files
  }

  private static func failureName(_ backup: ScheduledBackup) -> String {
    backup.name + "-failed.service"
  }

  private static func service(_ backup: ScheduledBackup) -> String {
    var text = mark + "\n[Unit]\nDescription=Back up this user's apps\n"
    text += "Documentation=man:sandboxctl-backup(1)\n"
    if backup.isOnMainsOnly { text += "ConditionACPower=true\n" }
    if backup.onFailure != nil { text += "OnFailure=\(failureName(backup))\n" }
    text += "\n[Service]\nType=oneshot\n"
    for (name, value) in backup.environment {
      text += "Environment=\(word("\(name)=\(value)", isCommand: false))\n"
    }
    let words = ([backup.program] + backup.words).map { word($0, isCommand: true) }
    text += "ExecStart=\(words.joined(separator: " "))\n"
    return text + "Nice=10\nCPUSchedulingPolicy=batch\nIOSchedulingClass=idle\n"
  }

  private static func timer(_ backup: ScheduledBackup) -> String {
    var text = mark + "\n[Unit]\nDescription=Back up this user's apps again and again\n"
    text += "Documentation=man:sandboxctl-schedule-install(1)\n"
    text += "\n[Timer]\nOnCalendar=\(backup.calendar.systemd)\nPersistent=true\n"
    if backup.randomDelay > 0 { text += "RandomizedDelaySec=\(backup.randomDelay)\n" }
    return text + "\n[Install]\nWantedBy=timers.target\n"
  }

  private static func failure(_ backup: ScheduledBackup, _ command: String) -> String {
    mark + "\n[Unit]\nDescription=What is run when the backup of this user's apps fails\n"
      + "\n[Service]\nType=oneshot\nExecStart=/bin/sh -c \(word(command, isCommand: true))\n"
  }

  /// A word as unit files quote it (systemd.service(5), "Command lines"; systemd.unit(5),
  /// "Specifiers").
  private static func word(_ text: String, isCommand: Bool) -> String {
    var escaped = text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
      .replacing("%", with: "%%")
    if isCommand { escaped = escaped.replacing("$", with: "$$") }
    return ShellWord.text(text) == text && escaped == text ? text : "\"\(escaped)\""
  }
}

/// The folder of this user's units, and the units of ours in it.
struct SystemdFolder {
  let path: ByteString

  init() throws {
    guard let configuration = Host.configurationFolder else {
      throw UsageError("there is no folder for units: HOME is not set", hint: "set HOME")
    }
    path = configuration.appending("systemd/user")
  }

  /// Writes units; what is there under their names and not ours is refused.
  func write(_ units: SystemdUnits) throws {
    let folder = try Folder.make(path: path, permissions: 0o755)
    for unit in units.files { _ = try isOurs(ByteString(unit.name), in: folder) }
    for unit in units.files {
      try AtomicFile.write(
        Array(unit.text.utf8), as: ByteString(unit.name), in: folder, permissions: 0o644)
    }
  }

  /// Removes the units of a schedule; false when there are none.
  func remove(_ name: String) throws -> Bool {
    var isRemoved = false
    guard let folder = try present() else { return false }
    for suffix in [".timer", ".service", "-failed.service"] {
      let file = ByteString(name + suffix)
      if try isOurs(file, in: folder) {
        try folder.remove(file)
        isRemoved = true
      }
    }
    return isRemoved
  }

  /// The schedules that are there, each with the lines that say when and what.
  func schedules() throws -> [(name: String, calendar: String, command: String)] {
    guard let folder = try present() else { return [] }
    return try folder.names().compactMap { $0.utf8 }.sorted().compactMap { file in
      guard file.hasPrefix(ScheduledBackup.prefix), file.hasSuffix(".timer") else { return nil }
      let name = String(file.dropLast(".timer".count))
      guard let timer = try text(ByteString(file), in: folder), timer.hasPrefix(SystemdUnits.mark)
      else { return nil }
      let service = try text(ByteString(name + ".service"), in: folder) ?? ""
      return (name, Self.value("OnCalendar", in: timer), Self.value("ExecStart", in: service))
    }
  }

  private func present() throws -> Folder? {
    do throws(SystemError) {
      return try Folder.open(path: path)
    } catch {
      if error.isMissing { return nil }
      throw error
    }
  }

  private static func value(_ key: String, in text: String) -> String {
    let line = text.split(separator: "\n").first { $0.hasPrefix(key + "=") }
    return line.map { String($0.dropFirst(key.count + 1)) } ?? ""
  }

  private func text(_ name: ByteString, in folder: borrowing Folder) throws -> String? {
    guard let status = try folder.statusIfPresent(name), status.kind == .file else { return nil }
    return try folder.file(name).readAll(limit: 1 << 20).map { String(decoding: $0, as: UTF8.self) }
  }

  /// Whether there is a unit of ours of that name; somebody else's is an error.
  private func isOurs(_ name: ByteString, in folder: borrowing Folder) throws -> Bool {
    guard try folder.statusIfPresent(name) != nil else { return false }
    guard try text(name, in: folder)?.hasPrefix(SystemdUnits.mark) == true else {
      throw LifecycleError(
        .failed, "'\(path.appending(name))' was not written by this program: it stays as it is",
        hint: "move it away, or choose another name by '--profile'")
    }
    return true
  }
}

/// The user's own systemd, by systemctl(1).
enum Systemctl {
  /// When a timer ran last and when it runs next, as far as systemd tells.
  static func times(ofTimer name: String) -> (last: Timestamp?, next: Timestamp?) {
    let words = [
      "systemctl", "--user", "show", name + ".timer", "--timestamp=unix",
      "--property=LastTriggerUSec,NextElapseUSecRealtime",
    ]
    guard let ending = try? ChildProgram.run(words.map { ByteString($0) }), ending.code == 0 else {
      return (nil, nil)
    }
    let lines = String(decoding: ending.output, as: UTF8.self).split(separator: "\n")
    func time(_ property: String) -> Timestamp? {
      let line = lines.first { $0.hasPrefix(property + "=@") }
      return line.flatMap { Int64($0.dropFirst(property.count + 2)) }
        .map { Timestamp(seconds: $0) }
    }
    return (time("LastTriggerUSec"), time("NextElapseUSecRealtime"))
  }

  /// Runs a command of it; nil when it succeeds, else why not.
  static func fails(_ words: [String]) -> String? {
    do {
      let ending = try ChildProgram.run(
        (["systemctl", "--user"] + words).map { ByteString($0) })
      if ending.code == 0 { return nil }
      let said = String(decoding: ending.errors, as: UTF8.self).split(separator: "\n").first
      return said.map { ByteString(String($0)).description }
        ?? "systemctl ended with \(ending.code)"
    } catch { return "\(error)" }
  }
}
