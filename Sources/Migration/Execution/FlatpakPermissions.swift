internal import DeviceDiscovery
internal import SystemIO

extension AppMigration {
  /// The command that grants a Flatpak access to the paths outside its places that its data refers
  /// to, or nil if it needs none, is not a Flatpak, or is not installed.
  ///
  /// Reads the app's metadata and its overrides (flatpak-metadata(5), flatpak-override(1)).
  package var overrideCommand: String? {
    let (end, paths) = (route.to, outside.filter { !Self.isOfSystem($0) })
    guard end.packaging == .flatpak, !paths.isEmpty,
      let entries = Self.filesystems(of: end.app, home: end.home)
    else { return nil }
    let access = FlatpakAccess(
      of: end.app, home: end.home, filesystems: entries,
      userDirectories: Self.userDirectories(home: end.home))
    return access.overrideCommand(for: paths)
  }

  /// Whether a path is in a directory that each sandbox has separately. The volumes of a desktop
  /// session are in `/run/media` (udisks(8)).
  private static func isOfSystem(_ path: ByteString) -> Bool {
    if path.isWithin("/run/media") { return false }
    let own: [ByteString] = [
      "/app", "/bin", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/tmp",
      "/usr",
    ]
    return own.contains { path.isWithin($0) }
  }

  /// Returns the entries of `filesystems` of an installed app, those of overrides last; nil if the
  /// app is not installed for the user or the system.
  private static func filesystems(of app: ByteString, home: ByteString) -> [ByteString]? {
    let installations = [home.appending(".local/share/flatpak"), ByteString("/var/lib/flatpak")]
    let metadata = installations.lazy.compactMap { installation in
      keyFile(at: installation.appending("app").appending(app).appending("current/active/metadata"))
    }.first
    guard let metadata else { return nil }
    let overrides = installations.reversed().flatMap { installation in
      [ByteString("global"), app].compactMap {
        keyFile(at: installation.appending("overrides").appending($0))
      }
    }
    return ([metadata] + overrides).flatMap { file -> [ByteString] in
      guard let list = file.value("filesystems", in: "Context") else { return [] }
      return list.bytes.split(separator: UInt8(ascii: ";")).map { ByteString($0) }
    }
  }

  private static func keyFile(at path: ByteString) -> KeyValueFile? {
    guard let file = try? Descriptor.open(path: path),
      let bytes = try? file.readAll(limit: 1 << 20)
    else { return nil }
    return KeyValueFile(bytes)
  }

  /// Returns a user's directories by their names in Flatpak's entries (`download`), as
  /// `~/.config/user-dirs.dirs` states them (user-dirs.dirs(5)).
  private static func userDirectories(home: ByteString) -> [ByteString: ByteString] {
    let names: [(key: ByteString, entry: ByteString, usual: ByteString)] = [
      ("XDG_DESKTOP_DIR", "desktop", "Desktop"), ("XDG_DOCUMENTS_DIR", "documents", "Documents"),
      ("XDG_DOWNLOAD_DIR", "download", "Downloads"), ("XDG_MUSIC_DIR", "music", "Music"),
      ("XDG_PICTURES_DIR", "pictures", "Pictures"),
      ("XDG_PUBLICSHARE_DIR", "public-share", "Public"),
      ("XDG_TEMPLATES_DIR", "templates", "Templates"), ("XDG_VIDEOS_DIR", "videos", "Videos"),
    ]
    let file = keyFile(at: home.appending(".config/user-dirs.dirs"))
    return Dictionary(
      uniqueKeysWithValues: names.map { name in
        let stated = file?.value(name.key, in: "").flatMap { directory($0, home: home) }
        return (name.entry, stated ?? home.appending(name.usual))
      })
  }

  /// Returns the path of a quoted value, `"$HOME/Downloads"` or `"/absolute"`.
  private static func directory(_ value: ByteString, home: ByteString) -> ByteString? {
    let quote = UInt8(ascii: "\"")
    var text = value.bytes
    guard text.count > 2, text.first == quote, text.last == quote else { return nil }
    text = text.dropFirst().dropLast()
    let variable = Array("$HOME/".utf8)
    if text.starts(with: variable) {
      return home.appending(ByteString(text.dropFirst(variable.count)))
    }
    let path = ByteString(text)
    return path.isAbsolute ? path : nil
  }
}
