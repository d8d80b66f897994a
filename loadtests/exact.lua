-- Compares each answer to the byte: `wrk … -s exact.lua URL -- DUE [CONTENT-TYPE BODY]`; DUE and BODY are files.
local threads = {}

local function read(name)
   local file = assert(io.open(name, "rb"))
   local content = file:read("*a")
   file:close()
   return content
end

function setup(thread)
   table.insert(threads, thread)
end

function init(args)
   wrong, first, due = 0, "", read(args[1])
   if args[2] then
      wrk.method = "POST"
      wrk.headers["Content-Type"] = args[2]
      wrk.body = read(args[3])
   end
end

function response(status, headers, body)
   if status ~= 200 or body ~= due then
      if wrong == 0 then
         first = string.format("status %d with %d bytes", status, #body)
      end
      wrong = wrong + 1
   end
end

function done(summary, latency, requests)
   for _, thread in ipairs(threads) do
      if thread:get("wrong") > 0 then
         print(string.format("Wrong answers: %d, the first: %s", thread:get("wrong"), thread:get("first")))
      end
   end
end
