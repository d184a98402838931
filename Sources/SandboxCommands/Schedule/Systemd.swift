internal import SystemIO

/// The user's systemd, through systemctl(1) and loginctl(1), and its units.
enum Systemd {
  /// Returns the times of a timer's last and next run, as far as systemd knows them.
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

  /// Refuses times that systemd does not understand, before they replace those of a running timer.
  /// Accepts any text if there is no systemd-analyze(1).
  static func requireCalendar(_ text: String) throws(UsageError) {
    let words = ["systemd-analyze", "calendar", "--", text]
    guard let ending = try? ChildProgram.run(words.map { ByteString($0) }), ending.code != 0 else {
      return
    }
    throw UsageError(
      .invalidValue, "'\(ByteString(text))' is not a time for systemd",
      hint: "give a time such as 'Mon..Fri 12:30', which 'systemd-analyze calendar' checks")
  }

  /// Runs a command of systemctl. Returns nil if it succeeds, otherwise the reason.
  static func fails(_ words: [String]) -> String? {
    do {
      let ending = try ChildProgram.run(
        (["systemctl", "--user"] + words).map { ByteString($0) })
      if ending.code == 0 { return nil }
      let message = String(decoding: ending.errors, as: UTF8.self).split(separator: "\n").first
      return message.map { ByteString(String($0)).description }
        ?? "systemctl ended with status \(ending.code)"
    } catch { return "\(error)" }
  }

  /// Whether this user's systemd is known to end with the last logout, and the timers with it
  /// (loginctl(1), "enable-linger").
  static var isLingeringOff: Bool {
    let words = ["loginctl", "show-user", "\(Host.userID)", "--property=Linger"]
    let ending = try? ChildProgram.run(words.map { ByteString($0) })
    return ending?.code == 0 && ending?.output == Array("Linger=no\n".utf8)
  }
}

extension Systemd {
  /// The systemd(1) units of a recurring job of this user: a service, a timer unless the service
  /// runs permanently, and a service for failures if one is requested.
  struct Units {
    /// The units by file name.
    let files: [(name: String, text: String)]
    /// The name of the schedule.
    let name: String

    /// The first line of each unit, which identifies it as a unit of this program.
    static let mark = "# Written by 'sandboxctl schedule install'."

    init(_ job: ScheduledJob) throws {
      let lines =
        [job.program, job.onFailure ?? "", job.calendar?.systemd ?? ""]
        + job.words + job.forgetting + job.environment.map(\.value)
      guard !lines.contains(where: \.hasLineBreak) else {
        throw UsageError(
          .invalidShellText, "a unit line cannot contain a newline", hint: "remove the newline")
      }
      var files = [(job.name + ".service", Self.service(job))]
      if let calendar = job.calendar { files.append((job.unit, Self.timer(job, calendar))) }
      if let command = job.onFailure {
        files.append((Self.failureName(job), Self.failure(job, command)))
      }
      (self.files, name) = (files, job.name)
    }

    private static func failureName(_ job: ScheduledJob) -> String { job.name + "-failed.service" }

    private static func service(_ job: ScheduledJob) -> String {
      var text = mark + "\n[Unit]\nDescription=\(job.work.description)\n"
      text += documentation("sandboxctl-\(job.work.rawValue)", of: job)
      if job.isOnMainsOnly { text += "ConditionACPower=true\n" }
      if job.onFailure != nil { text += "OnFailure=\(failureName(job))\n" }
      text += "\n[Service]\nType=\(job.calendar == nil ? "exec" : "oneshot")\n"
      for (name, value) in job.environment {
        text += "Environment=\(word("\(name)=\(value)", isCommand: false))\n"
      }
      // With several ExecStart lines, the second would run only after a status of 0. systemd
      // refuses a program path with a quote or a backslash.
      let needsShell = !job.forgetting.isEmpty || job.program.contains { #"'"\"#.contains($0) }
      let words = needsShell ? ["/bin/sh", "-c", job.shellLine()] : [job.program] + job.words
      // Variables are not replaced in the path of the program.
      let command =
        [word(words[0], isCommand: false)]
        + words.dropFirst().map { word($0, isCommand: true) }
      text += "ExecStart=\(command.joined(separator: " "))\n"
      text += "Nice=10\nCPUSchedulingPolicy=batch\nIOSchedulingClass=idle\n"
      guard job.calendar == nil else { return text }
      // A usage error does not go away with a restart.
      text += "Restart=on-failure\nRestartSec=60\nRestartPreventExitStatus=2\n"
      return text + "\n[Install]\nWantedBy=default.target\n"
    }

    /// Returns the line for a man page that is installed with the program. systemd-analyze(1) looks
    /// it up with man(1).
    private static func documentation(_ page: String, of job: ScheduledJob) -> String {
      let directory = ByteString(job.program).parent.parent.appending("share/man/man1")
      let isThere = ["", ".gz"].contains { suffix in
        (try? Host.realPath(directory.appending(ByteString(page + ".1" + suffix)))) != nil
      }
      return isThere ? "Documentation=man:\(page)(1)\n" : ""
    }

    private static func timer(_ job: ScheduledJob, _ calendar: ScheduledJob.Calendar) -> String {
      var text = mark + "\n[Unit]\nDescription=\(job.work.description) (timer)\n"
      text += documentation("sandboxctl-schedule-install", of: job)
      text += "\n[Timer]\nOnCalendar=\(calendar.systemd)\nPersistent=true\n"
      if job.randomDelay > 0 { text += "RandomizedDelaySec=\(job.randomDelay)\n" }
      return text + "\n[Install]\nWantedBy=timers.target\n"
    }

    private static func failure(_ job: ScheduledJob, _ command: String) -> String {
      mark
        + "\n[Unit]\nDescription=Run after a failed \(job.work.rawValue) of this user's apps\n"
        + "\n[Service]\nType=oneshot\nExecStart=/bin/sh -c \(word(command, isCommand: true))\n"
    }

    /// Returns a word quoted for unit files (systemd.service(5), "Command lines"; systemd.unit(5),
    /// "Specifiers").
    private static func word(_ text: String, isCommand: Bool) -> String {
      var escaped = text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
        .replacing("%", with: "%%")
      if isCommand { escaped = escaped.replacing("$", with: "$$") }
      return ShellWord.text(text) == text && escaped == text ? text : "\"\(escaped)\""
    }

    /// Returns a line of words quoted by `word` in shell syntax; a line for the shell itself as the
    /// shell reads it.
    static func shellLine(_ line: String) -> String {
      var words: [String] = []
      var (word, isQuoted, isEscaped) = ("", false, false)
      for character in line {
        if isEscaped {
          word.append(character)
          isEscaped = false
        } else if character == "\\" {
          isEscaped = true
        } else if character == "\"" {
          isQuoted.toggle()
        } else if character == " ", !isQuoted {
          words.append(word)
          word = ""
        } else {
          word.append(character)
        }
      }
      let plain = (words + [word]).map {
        $0.replacing("%%", with: "%").replacing("$$", with: "$")
      }
      if plain.count == 3, plain[..<2] == ["/bin/sh", "-c"] { return plain[2] }
      return plain.map(ShellWord.text).joined(separator: " ")
    }
  }
}

extension ScheduledJob {
  /// The unit to start and enable.
  var unit: String { name + (calendar == nil ? ".service" : ".timer") }
}

extension ScheduledJob.Work {
  /// The description in the unit.
  fileprivate var description: String {
    switch self {
    case .backup: "Back up this user's apps"
    case .purge: "Purge this user's apps when space is short"
    }
  }
}

extension Systemd {
  /// The directory of this user's units, and the units of this program in it.
  struct UnitDirectory {
    let path: ByteString

    init() throws {
      guard let configuration = Host.configurationDirectory else {
        throw UsageError(
          .environmentMissing, "cannot find the directory of systemd's units: HOME is not set",
          hint: "set HOME")
      }
      path = configuration.appending("systemd/user")
    }

    /// Writes units that only this user can read: the commands in them may contain secrets.
    ///
    /// - Throws: `OperationError` if a unit of one of the names is not one of this program.
    func write(_ units: Units) throws {
      let directory = try Directory.make(path: path, permissions: 0o755)
      for unit in units.files { _ = try isOurs(ByteString(unit.name), in: directory) }
      // The unit of a previous schedule with another command for failures.
      let failed = ByteString(units.name + "-failed.service")
      if !units.files.contains(where: { ByteString($0.name) == failed }),
        try isOurs(failed, in: directory)
      {
        try directory.remove(failed)
      }
      for unit in units.files {
        try AtomicFile.write(
          Array(unit.text.utf8), as: ByteString(unit.name), in: directory, permissions: 0o600)
      }
    }

    /// Removes the units of a schedule. Returns false if there are none.
    func remove(_ name: String) throws -> Bool {
      var isRemoved = false
      guard let directory = try present() else { return false }
      for suffix in [".timer", ".service", "-failed.service"] {
        let file = ByteString(name + suffix)
        if try isOurs(file, in: directory) {
          try directory.remove(file)
          isRemoved = true
        }
      }
      return isRemoved
    }

    /// An installed schedule.
    struct Schedule {
      let name: String
      /// The enabled unit: a timer, or the service itself if it runs permanently.
      let unit: String
      /// The times; empty for a service.
      let calendar: String
      let command: String
    }

    /// Returns the installed schedules.
    func schedules() throws -> [Schedule] {
      guard let directory = try present() else { return [] }
      let files = try directory.names().compactMap { $0.utf8 }.sorted()
      return try files.compactMap { file in
        guard ScheduledJob.Work.allCases.contains(where: { file.hasPrefix($0.prefix) }),
          let text = try text(ByteString(file), in: directory), text.hasPrefix(Units.mark),
          text.contains("\nWantedBy=")
        else { return nil }
        let name = String(file.prefix(upTo: file.lastIndex(of: ".") ?? file.endIndex))
        let service = try self.text(ByteString(name + ".service"), in: directory) ?? ""
        return Schedule(
          name: name, unit: file, calendar: Self.value("OnCalendar", in: text),
          command: Units.shellLine(Self.value("ExecStart", in: service)))
      }
    }

    /// Returns the command of the schedule with a name; nil if there is none.
    func command(of name: String) throws -> String? {
      try schedules().first { $0.name == name }?.command
    }

    private func present() throws -> Directory? {
      do throws(SystemError) {
        return try Directory.open(path: path)
      } catch {
        if error.isMissing { return nil }
        throw error
      }
    }

    private static func value(_ key: String, in text: String) -> String {
      let line = text.split(separator: "\n").first { $0.hasPrefix(key + "=") }
      return line.map { String($0.dropFirst(key.count + 1)) } ?? ""
    }

    private func text(_ name: ByteString, in directory: borrowing Directory) throws -> String? {
      guard let status = try directory.statusIfPresent(name), status.kind == .file else {
        return nil
      }
      return try directory.file(name).readAll(limit: 1 << 20).map {
        String(decoding: $0, as: UTF8.self)
      }
    }

    /// Whether there is a unit of this program with that name.
    ///
    /// - Throws: `OperationError` if the unit of that name is not one of this program.
    private func isOurs(_ name: ByteString, in directory: borrowing Directory) throws -> Bool {
      guard try directory.statusIfPresent(name) != nil else { return false }
      guard try text(name, in: directory)?.hasPrefix(Units.mark) == true else {
        throw OperationError(
          .failed, code: .notOurFile,
          "change", subject: path.appending(name),
          reason: "it was not written by this program",
          hint: "move it away, or choose another name with '--profile'")
      }
      return true
    }
  }
}
