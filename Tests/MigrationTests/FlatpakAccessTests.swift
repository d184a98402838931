import Migration
import SystemIO
import Testing

struct FlatpakAccessTests {
  private func access(_ filesystems: ByteString...) -> FlatpakAccess {
    FlatpakAccess(
      of: "org.example.App", home: "/home/u", filesystems: filesystems,
      userDirectories: ["download": "/home/u/Téléchargements", "music": "/media/music"])
  }

  @Test func entriesGrantTheirDirectories() {
    #expect(access("home").permits("/home/u/a/b"))
    #expect(!access("home").permits("/home/other"))
    #expect(access("host").permits("/media/usb/a"))
    #expect(!access("host").permits("/etc/passwd"))
    #expect(access("~/Games").permits("/home/u/Games/x"))
    #expect(!access("~/Games").permits("/home/u/Games2"))
    #expect(access("/mnt/data:rw").permits("/mnt/data"))
    #expect(access("xdg-download").permits("/home/u/Téléchargements/a"))
    #expect(access("xdg-music/mine").permits("/media/music/mine"))
    #expect(!access("xdg-music/mine").permits("/media/music"))
    #expect(
      access("xdg-config/kdeglobals:ro").permits("/home/u/.config/kdeglobals", writing: false))
    #expect(!access("xdg-config/kdeglobals:ro").permits("/home/u/.config/kdeglobals"))
  }

  @Test func nothingIsGrantedWithoutAnEntry() {
    for path in ["/home/u/a", "/", "relative", "/home/u/.var/app/org.example.App/../other"] {
      #expect(!access().permits(ByteString(path)))
    }
    #expect(access().permits("/home/u/.var/app/org.example.App/config/a"))
    for entry: ByteString in ["xdg-videos", "xdg-nothing", "", ":", "!", "../x", "~/../v", "a:b:c"]
    {
      #expect(!access(entry).permits("/home/v"), "\(entry)")
    }
  }

  @Test func anOverrideWithdrawsAccess() {
    let access = access("home", "!~/Secret")
    #expect(access.permits("/home/u/a"))
    #expect(!access.permits("/home/u/Secret/a"))
    #expect(!self.access("home", "!home").permits("/home/u/a"))
    #expect(self.access("!home", "home").permits("/home/u/a"))
  }

  @Test func theCommandNamesEachMissingDirectoryOnce() {
    let command = access("xdg-download").overrideCommand(
      for: [
        "/home/u/Téléchargements", "/media/games/a", "/media/games", "/media/my games",
        "/media/games", "relative", "/", "/media/bad\nname",
      ])
    #expect(
      command == "flatpak override --user --filesystem=/media/games "
        + "'--filesystem=/media/my games' org.example.App")
    #expect(access("home").overrideCommand(for: ["/home/u/a"]) == nil)
  }
}
