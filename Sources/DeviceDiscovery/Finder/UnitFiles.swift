internal import SandboxModel
internal import SystemIO

/// The unit files and drop-ins of a system, as in the search path of systemd.unit(5), the directory
/// with the highest precedence first. Files that exist only while the system runs (generators,
/// transient units) are included if their directories exist.
struct UnitFiles {
  /// The search path below the system's root.
  static let directories: [ByteString] = [
    "etc/systemd/system.control", "run/systemd/system.control", "run/systemd/transient",
    "etc/systemd/system", "etc/systemd/system.attached", "run/systemd/system",
    "run/systemd/system.attached", "run/systemd/generator", "usr/local/lib/systemd/system",
    "usr/lib/systemd/system", "lib/systemd/system", "run/systemd/generator.late",
  ]

  /// The limits for the files of a system.
  enum Limit {
    static let units = 10_000
    static let dropIns = 2000
    /// The total size in bytes.
    static let bytes = 64 << 20
  }

  /// The unit files by name.
  private var fragments: [UnitName: UnitFile] = [:]
  /// The drop-ins by the name of their directory, then by their own name.
  private var dropIns: [ByteString: [ByteString: UnitFile]] = [:]
  /// The instances that other units start.
  private var instances: Set<UnitName> = []
  private var dropInCount = 0
  private var byteCount = 0
  private var isFull = false

  /// Reads the files of a system.
  init(below root: borrowing Directory, _ survey: inout Survey) {
    for path in Self.directories where !isFull {
      // On most systems, `lib` is a link to `usr/lib`, which is in the search path.
      if path.components[0] == "lib", (try? root.status("lib"))?.kind == .symlink { continue }
      guard case .directory(let directory) = survey.descend(path.components, from: root, as: "")
      else { continue }
      read(directory, as: path, &survey)
    }
  }

  /// The units, sorted by name: those with a file, and the known instances of templates.
  var units: [UnitName] {
    let known = instances.filter { $0.template.flatMap(UnitName.init).map(has) == true }
    return Set(fragments.keys).union(known).sorted { $0.name < $1.name }
  }

  private func has(_ unit: UnitName) -> Bool { fragments[unit] != nil }

  /// Returns the settings of a unit: its file, or that of its template, and its drop-ins by name.
  func settings(of unit: UnitName) -> UnitSettings {
    var settings = UnitSettings()
    let file = fragments[unit] ?? unit.template.flatMap(UnitName.init).flatMap { fragments[$0] }
    if let file { settings.apply(file) }
    var files: [ByteString: UnitFile] = [:]
    for name in unit.dropInDirectories {
      files.merge(dropIns[name] ?? [:]) { stronger, _ in stronger }
    }
    for (_, file) in files.sorted(by: { $0.key < $1.key }) { settings.apply(file) }
    return settings
  }
}

// MARK: - Reading

extension UnitFiles {
  private mutating func read(
    _ directory: borrowing Directory, as path: ByteString, _ survey: inout Survey
  ) {
    for name in survey.names(in: directory, as: path) where !isFull {
      let here = path.appending(name)
      if let unit = UnitName(name) {
        addInstance(unit)
        if fragments[unit] == nil { readUnit(unit, in: directory, as: path, &survey) }
      } else if name.hasSuffix(".d") {
        guard let inner = survey.inner([name], of: directory, as: path) else { continue }
        readDropIns(in: inner, of: name, as: here, &survey)
      } else if [".wants", ".requires", ".upholds"].contains(where: name.hasSuffix) {
        guard let inner = survey.inner([name], of: directory, as: path) else { continue }
        for entry in survey.names(in: inner, as: here) {
          if let unit = UnitName(entry) { addInstance(unit) }
        }
      }
    }
  }

  private mutating func addInstance(_ unit: UnitName) {
    if unit.template != nil, instances.count < Limit.units { instances.insert(unit) }
  }

  private mutating func readUnit(
    _ unit: UnitName, in directory: borrowing Directory, as path: ByteString,
    _ survey: inout Survey
  ) {
    guard fragments.count < Limit.units else { return stop(at: path, "units", &survey) }
    if let bytes = content(of: unit.name, in: directory, as: path, &survey) {
      fragments[unit] = UnitFile(bytes)
    }
  }

  private mutating func readDropIns(
    in directory: borrowing Directory, of name: ByteString, as path: ByteString,
    _ survey: inout Survey
  ) {
    for file in survey.names(in: directory, as: path) where file.hasSuffix(".conf") {
      guard dropIns[name]?[file] == nil else { continue }
      guard dropInCount < Limit.dropIns else { return stop(at: path, "drop-ins", &survey) }
      let isMask = (try? directory.target(of: file)) == "/dev/null"
      guard let bytes = isMask ? [] : content(of: file, in: directory, as: path, &survey)
      else { continue }
      dropIns[name, default: [:]][file] = UnitFile(bytes)
      dropInCount += 1
    }
  }

  /// Returns the content of a file; nil for a link that masks a unit or is an alias of one. The
  /// file that a mask hides is read: the unit cannot start, but its data exists.
  private mutating func content(
    of name: ByteString, in directory: borrowing Directory, as path: ByteString,
    _ survey: inout Survey
  ) -> [UInt8]? {
    let found: [UInt8]?
    if survey.kind(of: name, in: directory, as: path.appending(name)) == .symlink {
      found = linked(name, in: directory, as: path, &survey)
    } else {
      found = survey.text(name, [], of: directory, as: path)
    }
    guard let found else { return nil }
    byteCount += found.count
    if byteCount > Limit.bytes {
      stop(at: path, "bytes", &survey)
      return nil
    }
    return found
  }

  /// Returns the content of a file elsewhere in the system that a link with the same name leads to
  /// (`systemctl link`). An absolute target is resolved below the system's root.
  private func linked(
    _ name: ByteString, in directory: borrowing Directory, as path: ByteString,
    _ survey: inout Survey
  ) -> [UInt8]? {
    guard let target = try? directory.target(of: name), target.lastComponent == name else {
      return nil
    }
    let file = (target.isAbsolute ? survey.root : directory.path).appending(target)
    guard let above = survey.outside(file.parent) else { return nil }
    guard above.path.isWithin(survey.root) else {
      survey.warn(
        .unusableFile, at: path.appending(name),
        because: "it is a link to '\(target)', which is outside the device, and was not read")
      return nil
    }
    return survey.text(name, [], of: above, as: above.path)
  }

  private mutating func stop(
    at path: ByteString, _ what: String, _ survey: inout Survey
  ) {
    guard !isFull else { return }
    isFull = true
    survey.warn(
      .unusableFile, at: path,
      because: "the system's unit files exceed the limits of \(Limit.units) units, "
        + "\(Limit.dropIns) drop-ins and \(Limit.bytes) bytes (\(what)); the others were not read")
  }
}
